#!/bin/sh
# skills-ref 0.1.1: the description of an agent skill ends at three hyphens.
#
# The reference library of the format splits SKILL.md at "---" wherever it occurs, not
# only at a line "---". Three hyphens in the description, as in a heading of Markdown or instead of a
# dash, end the front matter: the rest of the description is at the beginning of the body,
# members after it are lost, and validation reports no error.
#
# A good guess: the front matter ends at the line "---".
#
# Seen on 29 November 2026:
#   description: 'Reads logs', license: None, faults: []
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q "skills-ref==0.1.1" >&2
mkdir logs
cat >logs/SKILL.md <<'MD'
---
name: logs
description: Reads logs --- but only those of pumps.
license: MIT
---
Open the file.
MD
cat >finding.py <<'PY'
from pathlib import Path

from skills_ref import read_properties, validate

skill = read_properties(Path("logs"))
print(f"description: {skill.description!r}, license: {skill.license}, faults: {validate(Path('logs'))}")
PY
venv/bin/python finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
