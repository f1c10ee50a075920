import json
from typing import Any, Self

from ._errors import ConnectionFailed

_MAX_LINE = 64 << 20


class Event(dict[str, Any]):
    """An event of a run: a dict of all its fields, such as event["text"] of a token."""

    @classmethod
    def read(cls, line: bytes) -> Self:
        """Returns the event in a line of a stream."""
        try:
            event = cls(json.loads(line))
            if event.seq > 0:
                return event
        except (KeyError, TypeError, ValueError):
            pass
        raise ConnectionFailed("the stream has something that is not an event; check the address")

    @property
    def seq(self) -> int:
        """The number of the event, from 1."""
        return int(self["seq"])

    @property
    def type(self) -> str:
        """The kind of the event, such as node_end; the last one is run_end."""
        return str(self["event"])

    @property
    def node(self) -> str | None:
        """The name of the node, if the event is about one."""
        return self.get("node")

    @property
    def path(self) -> str | None:
        """The execution of the node, such as each[3]."""
        return self.get("path")


def split_lines(text: bytes) -> tuple[list[bytes], bytes]:
    """Returns the data of the complete lines of server-sent events, and the rest."""
    *lines, rest = text.split(b"\n")  # other line separators are part of a line
    if len(rest) > _MAX_LINE:
        raise ConnectionFailed(f"the stream has a line of more than {_MAX_LINE} bytes")
    return [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")], rest
