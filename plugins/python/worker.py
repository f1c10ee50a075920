"""Runs Python for tea: a line of JSON for each job, and for each message back."""
import ast
import contextlib
import datetime
import importlib
import importlib.metadata
import json
import linecache
import os
import re
import sys
import threading
import traceback

FILE = "<code>"
jobs = os.fdopen(os.dup(0), "r", encoding="utf-8")
messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # programs that the code starts cannot write to the pipe
null = os.open(os.devnull, os.O_RDONLY)
os.dup2(null, 0)
os.close(null)
sending = threading.Lock()


def send(**message):
    text = json.dumps(message, allow_nan=False)
    with sending:
        messages.write(text + "\n")
        messages.flush()


class Output:
    """Replaces stdout and stderr: each line is a message."""

    encoding, errors = "utf-8", "replace"

    def __init__(self):
        self.rest = ""

    def write(self, text):
        self.rest += text
        if "\n" in self.rest or len(self.rest) > 65536:
            lines, _, self.rest = self.rest.rpartition("\n") if "\n" in self.rest else (self.rest, "", "")
            send(log=lines)
        return len(text)

    def flush(self):
        if self.rest:
            send(log=self.rest)
            self.rest = ""

    def isatty(self):
        return False

    def fileno(self):
        return 1


class State(dict):
    """The state: also with attributes, and None for what is missing."""

    def __missing__(self, key):
        return None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def __setattr__(self, name, value):
        self[name] = value


class ActionError(Exception):
    """An action has failed; type is the type of its error."""

    def __init__(self, type, message):
        super().__init__(message)
        self.type = type


class Actions:
    """Calls other actions: actions.http_get(url=...) or actions["http.get"](url=...)."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name.replace("_", ".", 1)]

    def __getitem__(self, name):
        def call(state=None, **params):
            send(call=name, params=params)
            answer = json.loads(jobs.readline())
            if "error" in answer:
                raise ActionError(answer["type"], answer["error"])
            return answer["result"]

        return call


class Lazy:
    """A module that is imported on first use."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        return getattr(importlib.import_module(self._name), name)


def function_of(code):
    """Compiles code, which can return, to a function without parameters."""
    linecache.cache[FILE] = (len(code), None, code.splitlines(True), FILE)
    tree = ast.parse(code, FILE)
    shell = ast.parse("def node():\n    pass")
    if tree.body:
        shell.body[0].body = tree.body
    variables = {"__name__": "__tea__", "json": json, "datetime": datetime, "requests": Lazy("requests"), "actions": Actions()}
    return shell, variables


def run(job):
    if "module" in job:
        target = importlib.import_module(job["module"])
        for name in job["function"].split("."):
            target = getattr(target, name)
        return target(*job.get("args") or [], **job.get("kwargs") or {})
    shell, variables = function_of(job["code"])
    variables.update(state=State(job.get("state") or {}), data=job.get("data") or {}, parallel_results=job.get("parallel_results"))
    exec(compile(shell, FILE, "exec"), variables)
    result = variables.pop("node")()
    return {} if result is None else result


def line_of(error):
    """Returns the line of the code where an error has its origin; 0 if there is none."""
    if isinstance(error, SyntaxError) and error.filename == FILE:
        return error.lineno or 0
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    return lines[-1] if lines else 0


def plain(value, path="the result"):
    """Checks that a value is JSON, and returns it."""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{path} has the key {key!r}; keys must be text")
        return {key: plain(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{path}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise ValueError(f"{path} is {value}, which JSON does not have")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{path} is of type {type(value).__name__}, which JSON does not have; convert it")


def answer(job):
    out = Output()
    failure = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            result = plain(run(job))
        except MemoryError as error:
            failure = dict(type="resource_exhausted", error="the code exceeds its memory limit (settings.python.memory_mb)", line=line_of(error))
        except SyntaxError as error:
            failure = dict(type="validation_error", error=f"SyntaxError: {error.msg}", line=line_of(error))
        except RecursionError as error:
            failure = dict(type="python_error", exception="RecursionError", error="RecursionError: maximum recursion depth exceeded", line=line_of(error))
        except BaseException as error:
            name = type(error).__name__
            kind = error.type if isinstance(error, ActionError) else "python_error"
            text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            failure = dict(type=kind, exception=name, error=f"{name}: {error}"[:4000], line=line_of(error), traceback=text[-8000:])
    out.flush()
    send(**failure) if failure else send(result=result)


def missing(requirements):
    """Returns the requirements that are not installed, as far as their names and == say."""
    absent = []
    for text in requirements:
        name, exact = re.match(r"\s*([A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*(?:==\s*([^\s;,]+))?", text).groups()
        try:
            found = importlib.metadata.version(name)
        except (importlib.metadata.PackageNotFoundError, ValueError):
            absent.append(text)
        else:
            if exact and found != exact:
                absent.append(f"{text} (installed: {found})")
    return absent


def main():
    options = json.loads(sys.argv[1])
    sys.argv = [""]
    sys.path[:] = [p for p in options["path"] + sys.path if p]
    with contextlib.suppress(ImportError):
        import resource

        limit = options["memory_mb"] << 20
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, "RLIMIT_DATA"), (limit, limit))
    send(version=list(sys.version_info[:3]), missing=missing(options["requirements"]))
    for line in jobs:
        here = os.getcwd()
        answer(json.loads(line))
        os.chdir(here)


main()
