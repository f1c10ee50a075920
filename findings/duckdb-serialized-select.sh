#!/bin/sh
# DuckDB 1.5.6 and 2.0.1: a SELECT that 2.0 has serialised is a different query in 1.5,
# in part without an error.
#
# json_serialize_sql writes a statement as JSON, and json_execute_serialized_sql runs
# it. 2.0 has renamed the lists of arguments, and 1.5 takes a missing list as an empty
# one: an operator without operands is NULL, a list is empty. Where the function needs
# an argument, or there is a constant in another place, it is an error. In the other
# direction everything works.
#
# A good guess: the trees have a version, so that an older engine refuses them, or the
# format is stable, as it is in the other direction.
#
# Seen on 28 November 2026:
#   SELECT 1 + 2 AS x: 1.5 to 2.0 [(3,)], 2.0 to 1.5 [(None,)]
#   SELECT [1, 2] AS x: 1.5 to 2.0 [([1, 2],)], 2.0 to 1.5 [([],)]
#   SELECT pi() + 1 AS x: 1.5 to 2.0 [(4.141592653589793,)], 2.0 to 1.5 [(None,)]
#   SELECT upper('a') AS x: 1.5 to 2.0 [('A',)], 2.0 to 1.5 BinderException
#   SELECT 5 AS x LIMIT 1: 1.5 to 2.0 [(5,)], 2.0 to 1.5 ParserException
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
import json
import sys

import duckdb

statements = ["SELECT 1 + 2 AS x", "SELECT [1, 2] AS x", "SELECT pi() + 1 AS x", "SELECT upper('a') AS x", "SELECT 5 AS x LIMIT 1"]
db = duckdb.connect()
if sys.argv[1] == "write":
    json.dump([db.execute("SELECT json_serialize_sql(?)", [s]).fetchone()[0] for s in statements], open(sys.argv[2], "w"))
else:
    for tree in json.load(open(sys.argv[2])):
        try:
            print(db.sql(f"SELECT * FROM json_execute_serialized_sql('{tree.replace(chr(39), chr(39) * 2)}')").fetchall())
        except duckdb.Error as e:
            print(type(e).__name__)
PY
1.5.6/bin/python finding.py write old
2.0.1/bin/python finding.py write new
2.0.1/bin/python finding.py read old >old-in-new
1.5.6/bin/python finding.py read new >new-in-old
cat >statements <<'SQL'
SELECT 1 + 2 AS x
SELECT [1, 2] AS x
SELECT pi() + 1 AS x
SELECT upper('a') AS x
SELECT 5 AS x LIMIT 1
SQL
paste -d '|' statements old-in-new new-in-old | sed 's/|/: 1.5 to 2.0 /; s/|/, 2.0 to 1.5 /' >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
