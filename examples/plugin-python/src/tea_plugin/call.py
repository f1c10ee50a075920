import contextvars
import json
import threading
from typing import Any, Mapping

import grpc

from . import values
from .errors import ActionError
from .proto import plugin_pb2 as pb

# The call in whose handler the current code runs.
current_call = contextvars.ContextVar("current_call", default=None)


class Call:
    """One call of an action, with its way to the host.

    request is the protocol's InvokeRequest (run_id, node, attempt,
    idempotency_key and so on), instance what the bundle's open has returned.
    """

    def __init__(self, request, instance, context, host, emit=None):
        self.request, self.instance = request, instance
        self._context, self._host, self._emit = context, host, emit
        self._ended = threading.Event()
        if not context.add_callback(self._ended.set):
            self._ended.set()

    def check(self) -> None:
        """Raises an ActionError if the call is canceled or its deadline has passed."""
        if self._ended.is_set():
            raise ActionError("canceled", "the call was canceled or its deadline has passed")

    def sleep(self, seconds: float | None = None) -> None:
        """Waits so long, or until the call ends; then it raises an ActionError."""
        self._ended.wait(seconds)
        self.check()

    def time_remaining(self) -> float | None:
        """Returns the seconds until the deadline, or None: the timeout of everything that waits."""
        seconds = self._context.time_remaining()
        return seconds if seconds is not None and seconds < threading.TIMEOUT_MAX else None

    def token(self, text: str) -> None:
        """Emits a piece of text. The action must be declared with streaming."""
        token = pb.Token(text=text)
        self._report(pb.InvokeEvent(token=token), "Token", pb.TokenRequest(call_id=self.request.call_id, token=token))

    def progress(self, fraction: float, message: str) -> None:
        """Reports progress; fraction is from 0 to 1."""
        progress = pb.Progress(fraction=fraction, message=message)
        self._report(
            pb.InvokeEvent(progress=progress), "Progress", pb.ProgressRequest(call_id=self.request.call_id, progress=progress))

    def log(self, level: str, message: str, **fields: Any) -> None:
        """Writes a record to the run's log. level is debug, info, warn or error."""
        log = pb.Log(level=level, message=message, fields_json=values.encode(fields, "log fields") if fields else b"")
        self._report(pb.InvokeEvent(log=log), "Log", pb.LogRequest(call_id=self.request.call_id, log=log))

    def invoke(self, action: str, params: Mapping[str, Any] | None = None) -> Any:
        """Calls another action of the workflow and returns its result."""
        answer = self._request("InvokeAction", pb.InvokeActionRequest(
            call_id=self.request.call_id, action=action, params=values.encode(params or {}, f"parameters of {action}")))
        return json.loads(answer.result or b"null")

    def describe(self, action: str) -> Any:
        """Returns the protocol's description of an action."""
        return self._request("DescribeAction", pb.DescribeActionRequest(call_id=self.request.call_id, action=action)).action

    def note(self, key: str) -> tuple[bool, Any]:
        """Returns whether the calling node has the durable note, and the note."""
        answer = self._request("GetNote", pb.GetNoteRequest(call_id=self.request.call_id, key=key))
        return answer.found, json.loads(answer.note or b"null")

    def set_note(self, key: str, note: Any) -> None:
        """Stores a note. It survives a crash of plugin and host."""
        self._request("SetNote", pb.SetNoteRequest(
            call_id=self.request.call_id, key=key, note=values.encode(note, f"note {key}")))

    def usage(self, tokens: int = 0, usd: float = 0.0) -> None:
        """Counts the usage of one request to a model against the run's budget.

        It raises budget_exceeded when the budget is spent.
        """
        self._request("ReportUsage", pb.ReportUsageRequest(call_id=self.request.call_id, tokens=tokens, usd=usd))

    def _report(self, event, method, request):
        # Events of a streamed call are sent in its stream, which keeps their order.
        if self._emit:
            self._emit(event)
        elif self._host:
            self._request(method, request)

    def _request(self, method, request):
        if not self._host:
            raise ActionError("dependency_missing", "this host offers no callbacks")
        self.check()
        try:
            answer = getattr(self._host, method)(request)  # the host answers early when the call ends
        except grpc.RpcError as error:
            self.check()
            raise ActionError("connection_error", f"{method}: the host did not answer: {error}") from error
        if "error" in answer.DESCRIPTOR.fields_by_name and answer.HasField("error"):
            raise ActionError.from_pb(answer.error)
        return answer
