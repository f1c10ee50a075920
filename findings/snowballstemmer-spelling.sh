#!/bin/sh
# snowballstemmer 3.1.1: a capital letter or a typographic apostrophe changes the stem.
#
# The stemmers of Snowball expect words in lower case, with the apostrophe of ASCII, and
# the Python package passes words on as they are. So RUNNING has no suffix, Running keeps
# its capital, and the possessive of a text with typographic quotes has a stem of its
# own: a search finds other texts than the same search in lower case.
#
# A good guess: a stemmer for English unifies these spellings.
#
# Seen on 29 November 2026:
#   running run, Running Run, RUNNING RUNNING
#   dog's dog, dog’s dog’
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q "snowballstemmer==3.1.1" >&2
cat >finding.py <<'PY'
import sys

import snowballstemmer

sys.stdout.reconfigure(encoding="utf-8")
stem = snowballstemmer.stemmer("english").stemWord
for words in (["running", "Running", "RUNNING"], ["dog's", "dog\u2019s"]):
    print(", ".join(f"{word} {stem(word)}" for word in words))
PY
venv/bin/python finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
