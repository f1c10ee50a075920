"""Reads a push message for tests.

read.py reads one line of JSON: the private key and the secret of a subscription
(base64url, the key as PKCS #8), its endpoint, and the headers and the body of the
request (base64). It prints {"text": ..., "claims": {...}} after checking the signature.
"""

import base64
import json
import sys
from urllib.parse import urlsplit

import http_ece
from cryptography.hazmat.primitives.serialization import load_der_private_key
from py_vapid import Vapid02


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


given = json.loads(sys.stdin.readline())
key = load_der_private_key(decode(given["key"]), password=None)
text = http_ece.decrypt(base64.b64decode(given["body"]), private_key=key, auth_secret=decode(given["auth"]), version="aes128gcm")
authorization = given["authorization"].replace(", k=", ",k=")  # the library expects no space
if not Vapid02.verify(authorization):
    sys.exit("the signature is wrong: " + authorization)
token = authorization.split("t=")[1].split(",")[0]
claims = json.loads(decode(token.split(".")[1]))
origin = urlsplit(given["endpoint"])
if claims["aud"] != f"{origin.scheme}://{origin.netloc}":
    sys.exit("the token is for " + claims["aud"])
print(json.dumps({"text": text.decode(), "claims": claims, "key": authorization.split("k=")[1]}))
