"""Prints the main text of each HTML file of a directory, as JSON by file name."""

import json
import pathlib
import sys

import trafilatura

texts = {}
for file in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    texts[file.name] = trafilatura.extract(file.read_bytes(), include_comments=False, include_tables=True) or ""
json.dump(texts, sys.stdout)
