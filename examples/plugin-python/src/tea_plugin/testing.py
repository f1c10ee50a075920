"""Calls actions inside a test, without a process."""

import json
from dataclasses import dataclass, field
from typing import Any

from . import values
from .call import Call, current_call
from .errors import ActionError
from .proto import plugin_pb2 as pb


@dataclass
class Host:
    """The host of a test.

    actions are functions that answer when the action calls others, and notes
    the notes of the node. The other fields record what the action has emitted.
    """

    actions: dict = field(default_factory=dict)
    notes: dict = field(default_factory=dict)
    tokens: list = field(default_factory=list)
    progress: list = field(default_factory=list)
    logs: list = field(default_factory=list)

    def emit(self, event):
        kind = event.WhichOneof("event")
        if kind == "token":
            self.tokens.append(event.token.text)
        else:
            getattr(self, "progress" if kind == "progress" else "logs").append(getattr(event, kind))

    def InvokeAction(self, request):
        if request.action not in self.actions:
            return pb.InvokeResponse(error=pb.Error(type="not_found", message=f"the test has no action {request.action}"))
        try:
            result = self.actions[request.action](json.loads(request.params))
            return pb.InvokeResponse(result=values.encode(result, request.action))
        except ActionError as error:
            return pb.InvokeResponse(error=error.to_pb())

    def GetNote(self, request):
        if request.key not in self.notes:
            return pb.GetNoteResponse()
        return pb.GetNoteResponse(found=True, note=values.encode(self.notes[request.key], request.key))

    def SetNote(self, request):
        self.notes[request.key] = json.loads(request.note)
        return pb.SetNoteResponse()

    def ReportUsage(self, request):
        return pb.ReportUsageResponse()


class _Context:
    """What a call needs of gRPC."""

    def __init__(self, canceled):
        self._canceled = canceled

    def add_callback(self, callback):
        return not self._canceled

    def time_remaining(self):
        return None


def call_action(bundle, name, params=None, settings=None, host=None, canceled=False) -> Any:
    """Calls an action and returns its result; it raises the action's error."""
    host = host or Host()
    instance = bundle.open_instance({key: values.encode(value, key) for key, value in (settings or {}).items()})
    request = pb.InvokeRequest(action=name, params=values.encode(params or {}, name), call_id="test", run_id="test", node="test", attempt=1)
    call = Call(request, instance, _Context(canceled), host, host.emit)
    token = current_call.set(call)
    try:
        return json.loads(bundle.run(call))
    finally:
        current_call.reset(token)
        bundle.close(instance)
