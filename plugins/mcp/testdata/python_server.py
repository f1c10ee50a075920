"""An MCP server on the official SDK for Python, for tests of the mcp plugin. With the
argument "http" it serves streamable HTTP and prints its port."""

import asyncio
import socket
import sys
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

server = MCPServer("python")


class Branch(BaseModel):
    branch: str


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Adds two integers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("the answer is not 42")


@server.tool()
def crash() -> str:
    """Fails without an error for the client."""
    raise ValueError("the disk is full")


@server.tool()
def version(ctx: Context) -> str:
    """Returns the version of the protocol."""
    return ctx.request_context.protocol_version


@server.tool()
async def report(ctx: Context) -> str:
    """Sends log records."""
    await ctx.debug("too fine")
    await ctx.warning("the valve sticks")
    return "reported"


@server.tool()
async def elicit(ctx: Context) -> str:
    """Asks during the call, which the version 2026-07-28 does not have."""
    got = await ctx.elicit("Which branch?", Branch)
    return f"{got.action} {got.data.branch}"


@server.tool()
async def work(ctx: Context, steps: int) -> str:
    """Reports progress."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        await asyncio.sleep(0.01)
    return "done"


def ask() -> Elicit[Branch]:
    """Asks a person for a branch."""
    return Elicit("Which branch?", Branch)


@server.tool()
def choose(answer: Annotated[Branch, Resolve(ask)]) -> str:
    """Uses the branch that a person chooses."""
    return f"accept {answer.branch}"


@server.resource("greeting://{name}")
def greeting(name: str) -> str:
    """Greets a person."""
    return f"Hello {name}"


@server.prompt()
def review(code: str) -> str:
    """Asks for a review."""
    return f"Review this code: {code}"


if __name__ == "__main__":
    if "http" in sys.argv:
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        app = uvicorn.Config(server.streamable_http_app(), log_level="error")
        uvicorn.Server(app).run(sockets=[listener])
    else:
        server.run()
