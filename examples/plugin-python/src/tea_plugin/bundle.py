import inspect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from . import values
from .errors import ActionError
from .proto import plugin_pb2 as pb

PROTOCOL = 1
ROOT = Path(__file__).resolve().parents[2]


class Params(BaseModel):
    """The base class of parameters and settings: unknown names are errors."""

    model_config = ConfigDict(extra="forbid")


@dataclass
class Action:
    name: str
    summary: str
    handler: Callable
    params: Any  # a type for pydantic, or None
    result: Any
    streaming: bool
    idempotent: bool
    once: bool
    reads: bool

    def to_pb(self):
        return pb.Action(
            name=self.name, summary=self.summary, streaming=self.streaming, idempotent=self.idempotent,
            once=self.once, reads=self.reads,
            params_schema_json=_schema(self.params, "validation"),
            result_schema_json=_schema(self.result, "serialization"))


class Bundle:
    """The actions of a plugin, with what tea has to know about them.

    name is the file's name without "tea-plugin-". settings has a model for
    each top-level setting that the plugin reads, or None for any value.
    open(settings) returns the instance for a set of settings, which handlers
    find in call.instance; close(instance) releases it. The state of an instance
    with the methods export_state() and import_state(data) moves to a new
    version of the plugin, as bytes. files are the files of
    the plugin, relative to its executable file. The others are what the plugin
    needs of the host: environment variables, time to start, memory, and the
    paths of settings, such as "memory.path", that name what only one process
    can use.
    """

    def __init__(self, name, version, description="", settings=None, open=None, close=None, files=None,
                 env=(), start_timeout_ms=0, memory_bytes=0, exclusive=()):
        self.name, self.version, self.description = name, version, description
        self.settings = settings or {}
        self.open = open or (lambda settings: settings)
        self.close = close or (lambda instance: None)
        self.files = sources() if files is None else files
        self.env, self.start_timeout_ms = env, start_timeout_ms
        self.memory_bytes, self.exclusive = memory_bytes, exclusive
        self.actions = {}

    def action(self, name, streaming=False, idempotent=False, once=False, reads=False):
        """Declares a function handler(params, call) as an action.

        Its docstring is the summary. The annotations of params and of the
        result are the schemas: a model, or another type that pydantic
        supports; without an annotation anything is allowed. streaming means
        that it emits tokens or progress, idempotent that tea can repeat the
        call after a crash, once that its effect must happen at most once, reads
        that it changes nothing outside the run, so that dry runs call it.
        """

        def declare(handler):
            hints = get_type_hints(handler)
            first = next(iter(inspect.signature(handler).parameters))
            self.actions[name] = Action(
                name, inspect.getdoc(handler) or "", handler, hints.get(first), hints.get("return"), streaming, idempotent,
                once, reads)
            return handler

        return declare

    def manifest(self):
        return pb.Manifest(
            name=self.name, version=self.version, description=self.description, protocol=PROTOCOL,
            actions=[action.to_pb() for action in self.actions.values()],
            settings_schema_json={key: _schema(model, "validation") for key, model in self.settings.items()},
            files=self.files, env=self.env, start_timeout_ms=self.start_timeout_ms,
            memory_bytes=self.memory_bytes, exclusive=self.exclusive)

    def open_instance(self, settings):
        """Opens the instance for settings with JSON text."""
        checked = {key: _check(self.settings[key], json.loads(text), f"settings.{key}") for key, text in settings.items()}
        return self.open(checked)

    def run(self, call):
        """Runs an action and returns the JSON text of the result."""
        name = call.request.action
        action = self.actions.get(name)
        if action is None:
            raise ActionError("not_found", f"bundle {self.name} has no action {name}")
        params = _check(action.params, json.loads(call.request.params or b"{}"), f"parameters of {name}")
        try:
            return values.encode(action.handler(params, call), f"result of {name}")
        except values.TooLarge as error:
            raise ActionError("validation_error", str(error)) from error


def _schema(model, mode):
    if model is None:
        return b""
    return values.encode(TypeAdapter(model).json_schema(mode=mode), "schema")


def _check(model, value, what):
    if model is None:
        return value
    try:
        return TypeAdapter(model).validate_python(value)
    except ValidationError as error:
        problems = [": ".join(filter(None, [".".join(map(str, e["loc"])), e["msg"]])) for e in error.errors()]
        raise ActionError("validation_error", f"{what}: {'; '.join(problems)}") from error


def sources():
    """Lists what the plugin consists of besides its executable file.

    tea asks for the manifest again when one of these files has changed.
    """
    return sorted(str(file.relative_to(ROOT)) for pattern in ("requirements.txt", "src/**/*.py") for file in ROOT.glob(pattern))
