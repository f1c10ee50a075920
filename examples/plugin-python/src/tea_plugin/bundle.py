import inspect
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from . import values
from .call import Call
from .errors import ActionError
from .proto import plugin_pb2 as pb

PROTOCOL = 1
ROOT = Path(__file__).resolve().parents[2]

Function = TypeVar("Function", bound=Callable[..., Any])


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

    def __init__(
        self, name: str, version: str, description: str = "", settings: Mapping[str, Any] | None = None,
        open: Callable[[dict[str, Any]], Any] | None = None, close: Callable[[Any], Any] | None = None,
        files: Iterable[str] | None = None, env: Iterable[str] = (), start_timeout_ms: int = 0, memory_bytes: int = 0,
        exclusive: Iterable[str] = (),
    ) -> None:
        self.name, self.version, self.description = name, version, description
        self.settings = settings or {}
        self.open = open or (lambda settings: settings)
        self.close = close or (lambda instance: None)
        self.files = sources() if files is None else files
        self.env, self.start_timeout_ms = env, start_timeout_ms
        self.memory_bytes, self.exclusive = memory_bytes, exclusive
        self.actions = {}

    def action(
        self, name: str, streaming: bool = False, idempotent: bool = False, once: bool = False, reads: bool = False,
    ) -> Callable[[Function], Function]:
        """Declares a function as an action.

        Its docstring is the summary. A function handler(params, call), whose
        first parameter has a model derived from Params, gets all parameters in
        one object. Any other function gets each by its name; one with the
        annotation Call gets the call. The annotations of parameters and of the
        result are the schemas: a model, or another type that pydantic
        supports; without an annotation anything is allowed. streaming means
        that it emits tokens or progress, idempotent that tea can repeat the
        call after a crash, once that its effect must happen at most once, reads
        that it changes nothing outside the run, so that dry runs call it.
        """

        def declare(function: Function) -> Function:
            hints = get_type_hints(function, include_extras=True)
            handler, params = _handler(name, function, hints)
            self.actions[name] = Action(
                name, inspect.getdoc(function) or "", handler, params, hints.get("return"), streaming, idempotent, once, reads)
            return function

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


def _handler(name, function, hints):
    """Returns a function handler(params, call), and the type of params."""
    parameters = inspect.signature(function).parameters
    first = next(iter(parameters), None)
    if list(parameters) == ["params", "call"] or inspect.isclass(hints.get(first)) and issubclass(hints[first], Params):
        return function, hints.get(first)
    calls = [key for key in parameters if hints.get(key) is Call]
    fields = {
        key: (hints.get(key, Any), ... if parameter.default is parameter.empty else parameter.default)
        for key, parameter in parameters.items() if key not in calls}

    def handler(params, call):
        return function(**{key: getattr(params, key) for key in fields}, **dict.fromkeys(calls, call))

    return handler, create_model(name, __base__=Params, **fields)


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
    if ROOT.joinpath("src") not in Path(__file__).parents:  # this library is installed
        program = Path(sys.argv[0]).resolve()
        if not program.name.startswith("tea-plugin-"):
            return []
        modules = (Path(getattr(module, "__file__", None) or "").resolve() for module in list(sys.modules.values()))
        return sorted({file.name for file in modules if file.parent == program.parent and file.suffix == ".py"})
    return sorted(str(file.relative_to(ROOT)) for pattern in ("requirements.txt", "src/**/*.py") for file in ROOT.glob(pattern))
