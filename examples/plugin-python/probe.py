"""A plugin with one useful action, and with the probe actions by which the
conformance kit tests every part of the protocol."""

import json
import statistics
import threading

from teaplugin import Action, ActionError, Bundle, serve


def objectOf(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


STRING, INTEGER, OBJECT, ANY = {"type": "string"}, {"type": "integer"}, {"type": "object"}, {}


def describe_numbers(call, params):
    values = params["values"]
    if not values:
        raise ActionError("validation_error", "values is empty")
    return {"mean": statistics.fmean(values), "median": statistics.median(values), "stdev": statistics.pstdev(values)}


class Probe:
    """An instance: its settings and the calls of probe.wait that run."""

    def __init__(self, settings):
        if settings.get("probe") == "refuse":
            raise ActionError("validation_error", "settings.probe: refused, as asked")
        self.settings, self.waiting, self.lock = settings, 0, threading.Lock()


def greet(call, params):
    return {"text": f"Hello {params['name']}!" * params.get("times", 1)}


def fail(call, params):
    raise ActionError(
        params["type"], params["message"], params.get("retryable", False), params.get("retry_after_ms", 0),
        params.get("source", ""), params.get("details"))


def panic(call, params):
    raise RuntimeError("as asked")


def wait(call, params):
    probe = call.instance
    with probe.lock:
        probe.waiting += 1
    try:
        call.token("waiting")
        call.wait()
        raise ActionError("canceled", "the call was cancelled")
    finally:
        with probe.lock:
            probe.waiting -= 1


def big(call, params):
    return {"text": "x" * (params["bytes"] - len('{"text":""}'))}


def stream(call, params):
    n = params["tokens"]
    for i in range(n):
        call.token(str(i))
        call.progress((i + 1) / n, f"token {i}")
    call.log("warn", "streamed", tokens=n, none=None)
    return {"count": n}


def describe(call, params):
    action = call.describe(params["action"])
    described = {"name": action.name, "summary": action.summary}
    for flag in ("streaming", "idempotent"):
        if getattr(action, flag):
            described[flag] = True
    for key in ("params", "result"):
        schema = getattr(action, key + "_schema_json")
        if schema:
            described[key] = json.loads(schema)
    return described


def note(call, params):
    found, old = call.note(params["key"])
    call.set_note(params["key"], params["note"])
    return {"found": found, "note": old}


def caller(call, params):
    fields = ("run_id", "node", "attempt", "idempotency_key", "traceparent", "tracestate")
    return {name: getattr(call.request, name) for name in fields}


serve(Bundle(
    name="pyprobe", version="1.0.0", description="Statistics, and probes of the plugin protocol, in Python.",
    files=["probe.py", "teaplugin.py"], settings=["probe"], open=Probe, actions=[
        Action("stats.describe", "Mean, median and standard deviation of a list of numbers.", describe_numbers,
               objectOf(["values"], values={"type": "array", "items": {"type": "number"}}), idempotent=True),
        Action("probe.echo", "Returns its parameters.", lambda call, params: params, idempotent=True),
        Action("probe.greet", "Needs a name.", greet, objectOf(["name"], name=STRING, times=INTEGER)),
        Action("probe.fail", "Fails with the error that it is given.", fail, objectOf(
            ["type", "message"], type=STRING, message=STRING, retryable={"type": "boolean"}, retry_after_ms=INTEGER, source=STRING, details=OBJECT)),
        Action("probe.panic", "Throws.", panic, objectOf()),
        Action("probe.wait", "Emits a token and waits until it is cancelled.", wait, objectOf(), streaming=True),
        Action("probe.waiting", "Counts the calls of probe.wait that run.", lambda call, params: {"count": call.instance.waiting}, objectOf()),
        Action("probe.big", "Answers with a JSON text of so many bytes.", big),
        Action("probe.stream", "Emits tokens, progress and a log record.", stream, objectOf(["tokens"], tokens=INTEGER), streaming=True),
        Action("probe.invoke", "Calls another action.", lambda call, params: {"result": call.invoke(params["action"], params.get("params"))},
               objectOf(["action"], action=STRING, params=ANY)),
        Action("probe.describe", "Describes another action.", describe, objectOf(["action"], action=STRING)),
        Action("probe.note", "Reads a note and stores another under its key.", note, objectOf(["key", "note"], key=STRING, note=ANY)),
        Action("probe.call", "Tells who calls.", caller),
        Action("probe.settings", "Answers with the settings.", lambda call, params: call.instance.settings),
    ]))
