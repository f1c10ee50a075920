#!/bin/sh
# croniter 7.0.0 and cronsim 2.8 (PyPI): "0 0 */2 * 1" means different days.
#
# If both day fields are restricted, a day that matches either of them matches. crontab
# of Debian counts a field that begins with * as not restricted, including */2, so
# the day must match both; cronsim does the same. For croniter, */2 is a restriction, so
# it returns about four times as many days; its option day_or changes this. Both agree on
# "0 0 13 * 5".
#
# A good guess: both follow crontab, as their documentation says.
#
# Seen on 28 November 2026:
#   0 0 */2 * 1: croniter 02 03 05 07, cronsim 09 23 07 21
#   0 0 13 * 5: croniter 06 13 20 27, cronsim 06 13 20 27
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q croniter==7.0.0 cronsim==2.8 >&2
cat >finding.py <<'PY'
from datetime import datetime

from croniter import croniter
from cronsim import CronSim

for expression in ("0 0 */2 * 1", "0 0 13 * 5"):
    start = datetime(2026, 11, 1)
    a, b = croniter(expression, start), CronSim(expression, start)
    first = " ".join(a.get_next(datetime).strftime("%d") for _ in range(4))
    second = " ".join(next(b).strftime("%d") for _ in range(4))
    print(f"{expression}: croniter {first}, cronsim {second}")
PY
venv/bin/python -W ignore finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
