#!/bin/sh
# asyncua 2.1.0: a write to an unknown node returns "access denied", a read "node
# unknown", and browsing it no error.
#
# The server of the library checks whether a node may be written before it looks whether
# it exists. A client that creates a missing node, or reports a wrong address, on
# BadNodeIdUnknown does not recognize it. A scalar that is written to a variable with a
# list is accepted and replaces the list.
#
# A good guess: each of the three fails with BadNodeIdUnknown, and the scalar with
# BadTypeMismatch.
#
# Seen on 28 November 2026:
#   read: BadNodeIdUnknown
#   write: BadUserAccessDenied
#   browse: 0 children
#   list after a scalar was written: 3.0
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q asyncua==2.1.0 >&2
cat >finding.py <<'PY'
import asyncio
import logging
import socket

from asyncua import Client, Server, ua

logging.disable(logging.CRITICAL)


async def main():
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"opc.tcp://127.0.0.1:{free.getsockname()[1]}/x"
    server = Server()
    await server.init()
    server.set_endpoint(url)
    values = await server.nodes.objects.add_variable(await server.register_namespace("x"), "list", [1.0, 2.0])
    await values.set_writable()
    async with server, Client(url) as client:
        unknown = client.get_node("ns=2;s=nothing")
        for name, request in (("read", unknown.read_value()), ("write", unknown.write_value(1.0))):
            try:
                await request
                print(f"{name}: no error")
            except ua.UaStatusCodeError as e:
                print(f"{name}: {type(e).__name__}")
        print(f"browse: {len(await unknown.get_children())} children")
        node = client.get_node(values.nodeid)
        await node.write_value(3.0, ua.VariantType.Double)
        print(f"list after a scalar was written: {await node.read_value()}")


asyncio.run(main())
PY
venv/bin/python -W ignore finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
