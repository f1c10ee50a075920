#!/bin/sh
# a2a-sdk 1.3.0 (Python): an integer in a data part is sent as a floating-point number.
#
# The SDK keeps data in the Value of Protocol Buffers, whose only number is a double. In
# the JSON that it sends, 7 is 7.0, and an integer of more than 53 bits has other digits.
# A receiver that distinguishes integers gets a floating-point number, or shows 7.0 in a
# text. Strings are exact.
#
# A good guess: the JSON of a data part is what the program passed.
#
# Seen on 29 November 2026:
#   passed {"count": 7, "serial": 9007199254740993}
#   sent {"count": 7.0, "serial": 9007199254740992.0}
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q "a2a-sdk[http-server]==1.3.0" >&2
cat >finding.py <<'PY'
import json

from a2a.helpers import new_data_message
from a2a.types import Role
from google.protobuf.json_format import MessageToDict

data = {"count": 7, "serial": 9007199254740993}
message = MessageToDict(new_data_message(data, role=Role.ROLE_USER))
print("passed", json.dumps(data))
print("sent", json.dumps(message["parts"][0]["data"], sort_keys=True))
PY
venv/bin/python finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
