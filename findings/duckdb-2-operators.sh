#!/bin/sh
# DuckDB 2.0.1: ~ finds a pattern anywhere, // and % by zero are errors, and a vector of
# zeros is the nearest one.
#
# In 1.5.6, ~ compares the whole text, // and % by zero are NULL, and the cosine of a
# vector of zeros is -1. In 2.0, ~ finds a part, the two divisions fail the statement
# while / is still infinity, and the cosine is NaN, which ORDER BY ... DESC puts first:
# a search for the most similar entries returns those without content.
#
# A good guess: a major version keeps the operators; and // treats zero as / does.
#
# Seen on 28 November 2026:
#   1.5.6: 'valve' ~ 'al' False, 1 / 0 inf, 1 // 0 None, 5 % 0 None, ln(0) OutOfRangeException
#   1.5.6: most similar first [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]
#   2.0.1: 'valve' ~ 'al' True, 1 / 0 inf, 1 // 0 InvalidInputException, 5 % 0 InvalidInputException, ln(0) -inf
#   2.0.1: most similar first [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]
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


def value(expression):
    try:
        return db.sql("SELECT " + expression).fetchall()[0][0]
    except duckdb.Error as e:
        return type(e).__name__


print(duckdb.__version__ + ":", ", ".join(f"{e} {value(e)}" for e in ("'valve' ~ 'al'", "1 / 0", "1 // 0", "5 % 0", "ln(0)")))
rows = db.sql("""SELECT v FROM (VALUES ([1, 0]::FLOAT[2]), ([0, 1]::FLOAT[2]), ([0, 0]::FLOAT[2])) t(v)
    ORDER BY array_cosine_similarity(v, [1, 0]::FLOAT[2]) DESC""").fetchall()
print(duckdb.__version__ + ": most similar first", ", ".join(str(list(r[0])) for r in rows))
PY
{ 1.5.6/bin/python finding.py; 2.0.1/bin/python finding.py; } >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
