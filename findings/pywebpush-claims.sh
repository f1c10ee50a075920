#!/bin/sh
# pywebpush 2.5.0: the second push service gets a token that was signed for the first.
#
# webpush() adds aud and exp to the dictionary of claims that it is given. A program that
# passes the same dictionary for each subscription signs all tokens for the push service
# of the first one, which other services refuse (RFC 8292: aud is the origin of the push
# service). A new dictionary for each call avoids it.
#
# A good guess: the claims of the caller are copied, and aud follows the subscription.
#
# Seen on 29 November 2026:
#   sent to https://one.example.net/a, signed for https://one.example.net
#   sent to https://two.example.net/b, signed for https://one.example.net
#   the caller's claims: aud, exp, sub
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q "pywebpush==2.5.0" "py-vapid==1.9.6" >&2
cat >finding.py <<'PY'
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

import requests
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02
from pywebpush import webpush


class Service:
    """Stands in for the push services: shows for whom a token is signed."""

    def post(self, url, headers, **_):
        header = {name.lower(): value for name, value in headers.items()}["authorization"]
        claims = header.split("t=")[1].split(",")[0].split(".")[1]
        print(f"sent to {url}, signed for {json.loads(urlsafe_b64decode(claims + '=='))['aud']}")
        response = requests.Response()
        response.status_code = 201
        return response


def subscription(endpoint):
    key = ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return {"endpoint": endpoint, "keys": {"p256dh": urlsafe_b64encode(key).decode(), "auth": urlsafe_b64encode(bytes(16)).decode()}}


vapid = Vapid02()
vapid.generate_keys()
claims = {"sub": "mailto:ops@example.org"}
for endpoint in ("https://one.example.net/a", "https://two.example.net/b"):
    webpush(subscription(endpoint), "hello", vapid_private_key=vapid, vapid_claims=claims, requests_session=Service())
print("the caller's claims:", ", ".join(sorted(claims)))
PY
venv/bin/python finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
