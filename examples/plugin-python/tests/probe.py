"""The probe actions of tea's conformance suite."""

import json
import threading
from typing import Any

from pydantic import Field

from tea_plugin import ActionError, Bundle, Call, Params, serve


class Instance:
    def __init__(self, settings):
        if settings.get("probe") == "refuse":
            raise ActionError("validation_error", "settings.probe: refused, as asked")
        self.settings, self.waiting, self.lock = settings, 0, threading.Lock()
        self.kept = None

    def export_state(self):
        return json.dumps(self.kept).encode()

    def import_state(self, data):
        self.kept = json.loads(data)

    def wait(self, change):
        with self.lock:
            self.waiting += change


probe = Bundle(
    name="probe", version="1.0.0", description="Exercises every part of the plugin protocol.",
    settings={"probe": None}, open=Instance)


class Nothing(Params):
    pass


@probe.action("probe.echo", idempotent=True)
def echo(params, call: Call):
    """Returns its parameters."""
    return params


class Greet(Params):
    name: str
    times: int = Field(1, ge=1)


@probe.action("probe.greet")
def greet(params: Greet, call: Call):
    """Needs a name."""
    return {"text": f"Hello {params.name}!" * params.times}


class Fail(Params):
    type: str
    message: str
    retryable: bool = False
    retry_after_ms: int = 0
    source: str = ""
    details: dict[str, Any] = {}


@probe.action("probe.fail")
def fail(params: Fail, call: Call):
    """Fails with the given error."""
    raise ActionError(**params.model_dump())


@probe.action("probe.panic")
def panic(params: Nothing, call: Call):
    """Throws."""
    raise RuntimeError("as asked")


@probe.action("probe.wait", streaming=True)
def wait(params: Nothing, call: Call):
    """Emits a token and waits until it is canceled."""
    call.instance.wait(1)
    try:
        call.token("waiting")
        call.sleep()
    finally:
        call.instance.wait(-1)


@probe.action("probe.waiting")
def waiting(params: Nothing, call: Call):
    """Counts the running calls of probe.wait."""
    return {"count": call.instance.waiting}


@probe.action("probe.big")
def big(params, call: Call):
    """Returns a JSON text of the given size in bytes."""
    return {"text": "x" * (params["bytes"] - len('{"text":""}'))}


class Stream(Params):
    tokens: int = Field(ge=0)


@probe.action("probe.stream", streaming=True)
def stream(params: Stream, call: Call):
    """Emits tokens, progress and a log record."""
    for i in range(params.tokens):
        call.token(str(i))
        call.progress((i + 1) / params.tokens, f"token {i}")
    call.log("warn", "streamed", tokens=params.tokens, none=None)
    return {"count": params.tokens}


class Invoke(Params):
    action: str
    params: Any = None


@probe.action("probe.invoke")
def invoke(params: Invoke, call: Call):
    """Calls another action."""
    return {"result": call.invoke(params.action, params.params)}


class Describe(Params):
    action: str


@probe.action("probe.describe")
def describe(params: Describe, call: Call):
    """Describes another action."""
    action = call.describe(params.action)
    described = {"name": action.name, "summary": action.summary}
    for flag in ("streaming", "idempotent"):
        if getattr(action, flag):
            described[flag] = True
    for key in ("params", "result"):
        if schema := getattr(action, f"{key}_schema_json"):
            described[key] = json.loads(schema)
    return described


class Note(Params):
    key: str
    note: Any


@probe.action("probe.note")
def note(params: Note, call: Call):
    """Reads a note and stores another under its key."""
    found, old = call.note(params.key)
    call.set_note(params.key, params.note)
    return {"found": found, "note": old}


class Usage(Params):
    tokens: int
    usd: float


@probe.action("probe.usage")
def usage(params: Usage, call: Call):
    """Reports usage, then returns the error of the report."""
    try:
        call.usage(params.tokens, params.usd)
        return {"error_type": ""}
    except ActionError as error:
        return {"error_type": error.type}


@probe.action("probe.call")
def caller(params, call: Call):
    """Returns the caller."""
    fields = ("run_id", "node", "attempt", "idempotency_key", "traceparent", "tracestate")
    return {name: getattr(call.request, name) for name in fields}


@probe.action("probe.keep")
def keep(params, call: Call):
    """Keeps a value in memory and returns the one before."""
    before, call.instance.kept = call.instance.kept, params["value"]
    return {"before": before}


@probe.action("probe.settings")
def settings(params, call: Call):
    """Returns the settings."""
    return call.instance.settings


serve(probe)
