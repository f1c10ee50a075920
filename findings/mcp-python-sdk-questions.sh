#!/bin/sh
# MCP Python SDK 2.3.0: a tool that asks with ctx.elicit works with a client of
# 2025-11-25 and fails with one of 2026-07-28.
#
# The server offers the new version although the tool cannot be used in it: there, a
# question is a result of the call, and ctx.elicit needs a request during the call. The
# resolver Elicit in the signature of the tool works in both. What a tool raises is no
# longer sent to the client, unlike in version 1 of the SDK.
#
# A good guess: the SDK carries a question of ctx.elicit over both versions, or offers
# only the version that the server can serve.
#
# Seen on 28 November 2026:
#   2025-11-25 ctx.elicit: main
#   2025-11-25 Elicit: main
#   2025-11-25 exception: Error executing tool fails
#   2026-07-28 ctx.elicit: NoBackChannelError
#   2026-07-28 Elicit: main
#   2026-07-28 exception: Error executing tool fails
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q mcp==2.3.0 >&2
cat >finding.py <<'PY'
import asyncio
import logging
from typing import Annotated

from mcp import Client, MCPError, types
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

logging.disable(logging.CRITICAL)
server = MCPServer("s")


class Branch(BaseModel):
    branch: str


def question() -> Elicit[Branch]:
    return Elicit("Which branch?", Branch)


@server.tool()
async def during(ctx: Context) -> str:
    return (await ctx.elicit("Which branch?", Branch)).data.branch


@server.tool()
def before(answer: Annotated[Branch, Resolve(question)]) -> str:
    return answer.branch


@server.tool()
def fails() -> str:
    raise ValueError("the disk is full")


async def answer(context, params):
    return types.ElicitResult(action="accept", content={"branch": "main"})


async def main():
    for mode in ("legacy", "auto"):
        async with Client(server, mode=mode, elicitation_callback=answer) as client:
            for name, tool in (("ctx.elicit", "during"), ("Elicit", "before"), ("exception", "fails")):
                try:
                    text = (await client.call_tool(tool, {})).content[0].text
                except MCPError as e:
                    text = type(e).__name__
                print(client.protocol_version, f"{name}: {text}")


asyncio.run(main())
PY
venv/bin/python -W ignore finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
