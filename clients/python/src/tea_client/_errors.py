import re

from ._types import Run

# Messages about a file begin with FILE:LINE:COLUMN or FILE:LINE, and have a line with the hint.
_POSITION = re.compile(r"^((?:[A-Za-z]:)?[^:\n]+:\d+(?::\d+)?): ")
_HINT = re.compile(r"^ *hint: (.+)$", re.MULTILINE)

_TYPES = {
    400: "validation_error", 401: "permission_denied", 403: "permission_denied", 404: "not_found", 409: "conflict",
    422: "validation_error", 429: "rate_limited", 503: "unavailable", 507: "resource_exhausted",
}


def position_in(message: str) -> str | None:
    """Returns the position with which a message begins."""
    found = _POSITION.match(message)
    return found[1] if found else None


class TeaError(Exception):
    """The base class of this package's errors.

    type is what a program branches on. position is FILE:LINE or FILE:LINE:COLUMN of a workflow,
    and hint says what to do; both are None where they are unknown.
    """

    def __init__(self, type: str, message: str, position: str | None = None) -> None:
        super().__init__(message)
        self.type, self.message = type, message
        self.position, hint = position or position_in(message), _HINT.search(message)
        self.hint = hint[1] if hint else None


class ConnectionFailed(TeaError):
    """The server did not answer, or not as a tea server does. A request may have had its effect."""

    def __init__(self, message: str) -> None:
        super().__init__("connection_error", message)


class ServerError(TeaError):
    """The server refused a request with an HTTP status. retry_after is in seconds, 0 if it gave none."""

    def __init__(self, status: int, message: str, retry_after: int = 0) -> None:
        super().__init__(_TYPES.get(status, "internal_error"), message)
        self.status, self.retry_after = status, retry_after


class RunFailed(TeaError):
    """A run failed, was stopped or is parked. run is its description, path the execution that failed."""

    def __init__(self, run: Run, path: str | None, position: str | None) -> None:
        reason = run.get("error") or run.get("parked") or f"run {run['id']} is {run['status']}"
        super().__init__(run.get("error_type") or run["status"], reason, position)
        self.run, self.path = run, path
