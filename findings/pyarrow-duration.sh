#!/bin/sh
# pyarrow 26.0.1: a duration in a Parquet file is an integer without a unit to other
# programs.
#
# Parquet has no type for a span of microseconds, so pyarrow stores the integer alone and
# keeps the type in the Arrow schema, which is in the metadata of the file. pyarrow reads a
# duration again; DuckDB 1.5.6 and other readers see a BIGINT in the unit of the Arrow
# column, from seconds to nanoseconds. Parquet has a type for a time of day, which is read.
#
# A good guess: the column is an INTERVAL, or pyarrow refuses to write it.
#
# Seen on 29 November 2026:
#   pyarrow: duration[ms] 0:01:30, time64[us] 00:01:30
#   DuckDB: BIGINT 90000, TIME 00:01:30
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q "pyarrow==26.0.1" "duckdb==1.5.6" >&2
cat >finding.py <<'PY'
import datetime

import duckdb
import pyarrow
import pyarrow.parquet

ran, at = datetime.timedelta(seconds=90), datetime.time(0, 1, 30)
table = pyarrow.table({"ran": pyarrow.array([ran], pyarrow.duration("ms")), "day": pyarrow.array([at], pyarrow.time64("us"))})
pyarrow.parquet.write_table(table, "x.parquet")
read = pyarrow.parquet.read_table("x.parquet")
print("pyarrow:", ", ".join(f"{read.schema.field(c).type} {read[c][0].as_py()}" for c in read.column_names))
row = duckdb.connect().execute("SELECT typeof(ran), ran, typeof(day), day FROM 'x.parquet'").fetchone()
print(f"DuckDB: {row[0]} {row[1]}, {row[2]} {row[3]}")
PY
venv/bin/python finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
