import json
from typing import Any

from . import values
from .proto import plugin_pb2 as pb

# The types of failure after which the same call usually succeeds later.
_TEMPORARY = {"timeout", "connection_error", "rate_limited", "plugin_crashed"}


class ActionError(Exception):
    """The failure of an action.

    Workflows match on its type: validation_error, not_found, permission_denied,
    dependency_missing, timeout, connection_error, query_error, rate_limited,
    resource_exhausted, canceled, internal_error, or a type of your own.

    retryable means that tea can retry the call; by default it depends on the
    type. retry_after_ms is the least time to wait before the next attempt,
    source the origin of the error, and details are further fields for the
    workflow.
    """

    def __init__(
        self, type: str, message: str, retryable: bool | None = None, retry_after_ms: int = 0, source: str = "", details: Any = None,
    ) -> None:
        super().__init__(message)
        self.type, self.message = type, message
        self.retryable = type in _TEMPORARY if retryable is None else retryable
        self.retry_after_ms, self.source, self.details = retry_after_ms, source, details

    def to_pb(self):
        details = values.encode(self.details, "details of the error") if self.details else b""
        return pb.Error(
            type=self.type, message=self.message, retryable=self.retryable,
            retry_after_ms=self.retry_after_ms, source=self.source, details_json=details)

    @staticmethod
    def from_pb(error):
        details = json.loads(error.details_json) if error.details_json else None
        return ActionError(
            error.type or "internal_error", error.message, error.retryable, error.retry_after_ms, error.source, details)

    @staticmethod
    def of(error, doing):
        """Returns an exception of a handler as an ActionError."""
        if isinstance(error, ActionError):
            return error
        return ActionError("internal_error", f"exception in {doing}: {type(error).__name__}: {error}")
