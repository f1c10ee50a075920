#!/bin/sh
# DuckDB 1.5.6 and 2.0.1: the sum of a column of integers is a floating-point number in
# the Parquet file that COPY writes.
#
# The type of a sum of BIGINT or INTEGER is HUGEINT. Parquet has no integer of 128 bits,
# so COPY stores a DOUBLE, without a warning: digits after the 16th are lost. An INTERVAL
# loses what is shorter than a millisecond. A cast to DECIMAL(38, 0) or BIGINT before COPY
# keeps the sum.
#
# A good guess: COPY writes what SELECT returns, or fails.
#
# Seen on 29 November 2026:
#   1.5.6: sum 9007199254740993 HUGEINT, read back 9007199254740992.0 DOUBLE
#   1.5.6: interval 00:00:00.0015 INTERVAL, read back 00:00:00.001 INTERVAL
#   1.5.6: cast 9007199254740993 DECIMAL(38,0), read back 9007199254740993 DECIMAL(38,0)
#   2.0.1: sum 9007199254740993 HUGEINT, read back 9007199254740992.0 DOUBLE
#   2.0.1: interval 00:00:00.0015 INTERVAL, read back 00:00:00.001 INTERVAL
#   2.0.1: cast 9007199254740993 DECIMAL(38,0), read back 9007199254740993 DECIMAL(38,0)
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
for v in 1.5.6 2.0.1; do
	python3 -m venv "$v"
	"$v/bin/pip" install -q "duckdb==$v" >&2
done
cat >finding.py <<'PY'
import duckdb

db = duckdb.connect()
total = "(SELECT sum(x) FROM (VALUES (9007199254740993::BIGINT), (0)) t(x))"
for name, value in {"sum": total, "interval": "INTERVAL '1500 microseconds'", "cast": total + "::DECIMAL(38, 0)"}.items():
    db.execute(f"COPY (SELECT {value} AS x) TO 'x.parquet' (FORMAT parquet)")
    told = db.execute(f"SELECT {value}::VARCHAR, typeof({value})").fetchone()
    read = db.execute("SELECT x::VARCHAR, typeof(x) FROM 'x.parquet'").fetchone()
    print(f"{duckdb.__version__}: {name} {' '.join(told)}, read back {' '.join(read)}")
PY
{ 1.5.6/bin/python finding.py; 2.0.1/bin/python finding.py; } >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
