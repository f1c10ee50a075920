#!/bin/sh
# usearch 2.26.0: equal vectors are found in the opposite order of their insertion, so
# two indexes with the same content answer differently.
#
# Of five entries with the same vector, the two that were added last are the answer; the
# keys do not matter, and an exact search is no different. Two devices that received the
# same entries in another order disagree, and so do an index before and after it is
# rebuilt.
#
# A good guess: entries at the same distance come by key or in the order in which they
# were added.
#
# Seen on 28 November 2026:
#   added 10 to 14: found 14 13, exact 14 13
#   added 14 to 10: found 10 11, exact 10 11
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q usearch==2.26.0 >&2
cat >finding.py <<'PY'
import numpy as np
from usearch.index import Index

for keys in (range(10, 15), range(14, 9, -1)):
    index = Index(ndim=4, metric="cos")
    for key in keys:
        index.add(key, np.array([1, 0, 0, 0], dtype=np.float32))
    near, exact = (index.search(np.array([1, 0, 0, 0], dtype=np.float32), 2, exact=e).keys for e in (False, True))
    print(f"added {keys[0]} to {keys[-1]}: found {near[0]} {near[1]}, exact {exact[0]} {exact[1]}")
PY
venv/bin/python -W ignore finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
