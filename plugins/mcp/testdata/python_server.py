"""An MCP server on the official SDK for Python, for tests of the mcp plugin."""

import asyncio
from typing import Annotated

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
    server.run()
