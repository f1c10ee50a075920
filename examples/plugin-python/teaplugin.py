"""Serves tea's plugin protocol in Python.

Everything that a plugin in another language has to do stands here, step by
step as docs/guide/plugins.md describes it. A plugin is a Bundle with actions;
see probe.py.
"""

import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from concurrent import futures

import grpc

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "gen"))
import go_plugin_broker_pb2_grpc as broker_grpc  # noqa: E402
from tea.plugin.v1 import plugin_pb2 as pb  # noqa: E402
from tea.plugin.v1 import plugin_pb2_grpc as pb_grpc  # noqa: E402

COOKIE = ("TEA_PLUGIN_COOKIE", "tea.plugin.v1")
PROTOCOL = 1
MAX_PAYLOAD = 64 << 20
MESSAGE_LIMITS = [
    ("grpc.max_send_message_length", MAX_PAYLOAD + (1 << 20)),
    ("grpc.max_receive_message_length", MAX_PAYLOAD + (1 << 20)),
]


class ActionError(Exception):
    """An action's failure; it is part of the answer."""

    def __init__(self, type, message, retryable=False, retry_after_ms=0, source="", details=None):
        super().__init__(message)
        self.type, self.message, self.retryable = type, message, retryable
        self.retry_after_ms, self.source, self.details = retry_after_ms, source, details or {}

    def to_pb(self):
        return pb.Error(
            type=self.type, message=self.message, retryable=self.retryable,
            retry_after_ms=self.retry_after_ms, source=self.source,
            details_json=encode(self.details) if self.details else b"")

    @staticmethod
    def from_pb(e):
        details = json.loads(e.details_json) if e.details_json else {}
        return ActionError(e.type or "internal_error", e.message, e.retryable, e.retry_after_ms, e.source, details)


def encode(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


class Action:
    """One action: handler(call, params) gives the result."""

    def __init__(self, name, summary, handler, params=None, streaming=False, idempotent=False):
        self.name, self.summary, self.handler, self.params = name, summary, handler, params
        self.streaming, self.idempotent = streaming, idempotent

    def to_pb(self):
        return pb.Action(
            name=self.name, summary=self.summary, streaming=self.streaming, idempotent=self.idempotent,
            params_schema_json=encode(self.params) if self.params else b"")

    def check(self, params):
        """Refuses parameters that do not fit the schema before any work is done."""
        if not isinstance(params, dict):
            raise ActionError("validation_error", f"parameters of {self.name}: expected an object")
        schema = self.params or {}
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in params:
                raise ActionError("validation_error", f'{self.name} needs the parameter "{name}"')
        for name, value in params.items():
            if name not in known:
                if schema.get("additionalProperties") is False:
                    raise ActionError("validation_error", f'{self.name} has no parameter "{name}"')
            elif not fits(value, known[name].get("type")):
                raise ActionError("validation_error", f'{self.name}: parameter "{name}" must be of type {known[name]["type"]}')


def fits(value, type):
    if type == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    wanted = {"string": str, "boolean": bool, "object": dict, "array": list}.get(type)
    return wanted is None or isinstance(value, wanted)


class Call:
    """What a handler can ask of its host. request has run_id, node and so on."""

    def __init__(self, request, instance, context, host, events):
        self.request, self.instance, self.context = request, instance, context
        self._host, self._events = host, events
        self._ended = threading.Event()
        if not context.add_callback(self._ended.set):
            self._ended.set()

    def wait(self):
        """Blocks until the call is cancelled or its deadline is over."""
        self._ended.wait()

    def token(self, text):
        if self._events:
            self._events(pb.InvokeEvent(token=pb.Token(text=text)))
        elif self._host:
            self._host.Token(pb.TokenRequest(call_id=self.request.call_id, token=pb.Token(text=text)))

    def progress(self, fraction, message):
        progress = pb.Progress(fraction=fraction, message=message)
        if self._events:
            self._events(pb.InvokeEvent(progress=progress))
        elif self._host:
            self._host.Progress(pb.ProgressRequest(call_id=self.request.call_id, progress=progress))

    def log(self, level, message, **fields):
        log = pb.Log(level=level, message=message, fields_json=encode(fields) if fields else b"")
        if self._events:
            self._events(pb.InvokeEvent(log=log))
        elif self._host:
            self._host.Log(pb.LogRequest(call_id=self.request.call_id, log=log))

    def host(self):
        if not self._host:
            raise ActionError("dependency_missing", "this host offers no callbacks")
        return self._host

    def invoke(self, action, params):
        answer = self.host().InvokeAction(pb.InvokeActionRequest(
            call_id=self.request.call_id, action=action, params=encode(params)))
        if answer.WhichOneof("outcome") == "error":
            raise ActionError.from_pb(answer.error)
        return json.loads(answer.result or b"null")

    def describe(self, action):
        answer = self.host().DescribeAction(pb.DescribeActionRequest(call_id=self.request.call_id, action=action))
        if answer.WhichOneof("outcome") == "error":
            raise ActionError.from_pb(answer.error)
        return answer.action

    def note(self, key):
        """Gives (found, note)."""
        answer = self.host().GetNote(pb.GetNoteRequest(call_id=self.request.call_id, key=key))
        if answer.HasField("error"):
            raise ActionError.from_pb(answer.error)
        return answer.found, json.loads(answer.note or b"null")

    def set_note(self, key, note):
        answer = self.host().SetNote(pb.SetNoteRequest(call_id=self.request.call_id, key=key, note=encode(note)))
        if answer.HasField("error"):
            raise ActionError.from_pb(answer.error)


class Bundle:
    """A set of actions. open(settings) makes an instance and may raise ActionError.

    files are those that the plugin consists of beside its executable: the
    manifest is stale when one of them has changed.
    """

    def __init__(self, name, version, description, actions, settings=(), open=lambda settings: None, files=()):
        self.name, self.version, self.description = name, version, description
        self.actions = {action.name: action for action in actions}
        self.settings, self.open, self.files = settings, open, files

    def manifest(self):
        return pb.Manifest(
            name=self.name, version=self.version, description=self.description, protocol=PROTOCOL,
            actions=[action.to_pb() for action in self.actions.values()],
            settings_schema_json={key: b"" for key in self.settings},
            files=self.files)


class Broker(broker_grpc.GRPCBrokerServicer):
    """go-plugin's broker: learns where the host's services listen."""

    def __init__(self):
        self._known, self._changed = {}, threading.Condition()

    def StartStream(self, requests, context):
        for info in requests:
            with self._changed:
                self._known[info.service_id] = f"{info.network}:{info.address}"
                self._changed.notify_all()
        return iter(())

    def address(self, service_id):
        with self._changed:
            if not self._changed.wait_for(lambda: service_id in self._known, timeout=5):
                raise ActionError("connection_error", "the host did not say where it listens")
            return self._known[service_id]


class Plugin(pb_grpc.PluginServicer):
    """The protocol's service."""

    def __init__(self, bundle, broker):
        self.bundle, self.broker = bundle, broker
        self.server = None
        self._lock = threading.Condition()
        self._instances, self._host = {}, None
        self._running, self._draining = 0, False

    def Describe(self, request, context):
        return pb.DescribeResponse(manifest=self.bundle.manifest())

    def Health(self, request, context):
        return pb.HealthResponse(ready=not self._draining)

    def Configure(self, request, context):
        answer = pb.ConfigureResponse(capabilities=["stream", "host"])
        try:
            self._connect(request.host_service)
            settings = {key: json.loads(raw) for key, raw in request.settings_json.items()}
            self._instances[request.instance_id] = self.bundle.open(settings)
        except ActionError as e:
            answer.error.CopyFrom(e.to_pb())
        return answer

    def _connect(self, service_id):
        with self._lock:
            if self._host is None and service_id:
                channel = grpc.insecure_channel(self.broker.address(service_id), options=MESSAGE_LIMITS)
                self._host = pb_grpc.HostStub(channel)

    def Release(self, request, context):
        self._instances.pop(request.instance_id, None)
        return pb.ReleaseResponse()

    def Invoke(self, request, context):
        return self._run(request, context, None)

    def InvokeStream(self, request, context):
        # gRPC takes a stream's messages from a generator; the handler runs
        # beside it and fills a queue.
        events, filled, done = [], threading.Condition(), object()

        def put(event):
            with filled:
                events.append(event)
                filled.notify()

        def run():
            try:
                answer = self._run(request, context, put)
                if answer.WhichOneof("outcome") == "error":
                    put(pb.InvokeEvent(error=answer.error))
                else:
                    put(pb.InvokeEvent(result=answer.result))
            finally:
                put(done)

        threading.Thread(target=run, daemon=True).start()
        while True:
            with filled:
                filled.wait_for(lambda: events)
                event = events.pop(0)
            if event is done:
                return
            yield event

    def _run(self, request, context, events):
        if request.instance_id not in self._instances:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"instance {request.instance_id} has not been configured")
        with self._lock:
            if self._draining:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the plugin is shutting down")
            self._running += 1
        try:
            return pb.InvokeResponse(result=self._result(request, context, events))
        except ActionError as e:
            return pb.InvokeResponse(error=e.to_pb())
        except Exception as e:  # whatever a handler throws is an answer, no crash
            traceback.print_exc()
            return pb.InvokeResponse(error=pb.Error(type="internal_error", message=f"exception in {request.action}: {e}"))
        finally:
            with self._lock:
                self._running -= 1
                self._lock.notify_all()

    def _result(self, request, context, events):
        action = self.bundle.actions.get(request.action)
        if action is None:
            raise ActionError("not_found", f"bundle {self.bundle.name} has no action {request.action}")
        params = json.loads(request.params or b"{}")
        action.check(params)
        call = Call(request, self._instances[request.instance_id], context, self._host, events)
        result = encode(action.handler(call, params))
        if len(result) > MAX_PAYLOAD:
            raise ActionError("validation_error", f"result of {request.action}: {len(result)} bytes are more than the limit of {MAX_PAYLOAD} (64 MiB)")
        return result

    def Shutdown(self, request, context):
        with self._lock:
            self._draining = True
            self._lock.wait_for(lambda: self._running == 0, timeout=request.grace_ms / 1000)
        # The answer must be out before the server goes.
        threading.Timer(0.05, lambda: self.server.stop(0.2)).start()
        return pb.ShutdownResponse()


def watch_host():
    """Ends the process and its children when the host is gone: the pipe that it holds ends."""
    fd = os.environ.get("TEA_PARENT_FD")

    def wait():
        if fd:
            while os.read(int(fd), 1):
                pass
        else:
            parent = os.getppid()
            while os.getppid() == parent:
                time.sleep(0.5)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def serve(bundle):
    """Serves the bundle until the host shuts it down."""
    if os.environ.get(COOKIE[0]) != COOKIE[1]:
        sys.exit(f"This is tea-plugin-{bundle.name} {bundle.version}, a plugin for tea. It is not started by hand: put it into ./plugins.")
    watch_host()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64), options=MESSAGE_LIMITS)
    broker = Broker()
    plugin = Plugin(bundle, broker)
    plugin.server = server
    broker_grpc.add_GRPCBrokerServicer_to_server(broker, server)
    pb_grpc.add_PluginServicer_to_server(plugin, server)
    directory = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp(prefix="tea")
    path = os.path.join(directory, f"py{os.getpid()}")
    server.add_insecure_port("unix:" + path)
    server.start()
    print(f"1|{PROTOCOL}|unix|{path}|grpc|", flush=True)
    server.wait_for_termination()
    if os.path.exists(path):
        os.remove(path)
