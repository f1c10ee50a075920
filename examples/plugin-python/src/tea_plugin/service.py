import logging
import queue
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from . import values
from .call import Call, current_call
from .errors import ActionError
from .proto import go_plugin_broker_pb2_grpc as broker_grpc
from .proto import plugin_pb2 as pb
from .proto import plugin_pb2_grpc as pb_grpc

# The size of a message is checked after that of the payload in it.
MESSAGE_LIMITS = [
    ("grpc.max_send_message_length", values.MAX_PAYLOAD + (1 << 20)),
    ("grpc.max_receive_message_length", values.MAX_PAYLOAD + (1 << 20)),
]

log = logging.getLogger(__name__)


class Broker(broker_grpc.GRPCBrokerServicer):
    """go-plugin's broker: the host sends the addresses of its services."""

    def __init__(self):
        self._addresses, self._changed = {}, threading.Condition()

    def StartStream(self, requests, context):
        for info in requests:
            with self._changed:
                self._addresses[info.service_id] = f"unix:{info.address}" if info.network == "unix" else info.address
                self._changed.notify_all()
        return iter(())

    def address(self, service_id):
        """Returns the address of a service; the host sends it soon."""
        with self._changed:
            if not self._changed.wait_for(lambda: service_id in self._addresses, timeout=5):
                raise ActionError("connection_error", "the host did not send the address of its services")
            return self._addresses[service_id]


@dataclass
class Instance:
    value: Any


class Plugin(pb_grpc.PluginServicer):
    """The service tea.plugin.v1.Plugin."""

    def __init__(self, bundle, broker, stop):
        self._bundle, self._broker, self._stop = bundle, broker, stop
        self._changed = threading.Condition()
        self._instances, self._host = {}, None
        self._running, self._draining = set(), False  # ids of calls

    def Describe(self, request, context):
        return pb.DescribeResponse(manifest=self._bundle.manifest())

    def Health(self, request, context):
        answer = pb.HealthResponse(ready=not self._draining)
        if request.call_id:  # the host no longer waits for this call
            running = request.call_id in self._running
            answer.call = pb.CALL_STATE_RUNNING if running else pb.CALL_STATE_ENDED
        return answer

    def Configure(self, request, context):
        answer = pb.ConfigureResponse(capabilities=["stream", "host"])
        try:
            self._connect(request.host_service)
            value = self._bundle.open_instance(request.settings_json)
            if hasattr(value, "export_state"):
                answer.capabilities.append("handover")
            if request.import_path:
                value.import_state(Path(request.import_path).read_bytes())
            self._instances[request.instance_id] = Instance(value)
        except Exception as error:
            answer.error.CopyFrom(ActionError.of(error, "configure").to_pb())
        return answer

    def _connect(self, service_id):
        with self._changed:
            if self._host is None and service_id:
                channel = grpc.insecure_channel(self._broker.address(service_id), options=MESSAGE_LIMITS)
                self._host = pb_grpc.HostStub(channel)

    def Release(self, request, context):
        answer = pb.ReleaseResponse()
        instance = self._instances.get(request.instance_id)
        try:
            if instance and request.export_path:
                with open(request.export_path, "xb") as file:
                    file.write(instance.value.export_state())
            if self._instances.pop(request.instance_id, None):
                self._bundle.close(instance.value)
        except Exception as error:
            answer.error.CopyFrom(ActionError.of(error, "release").to_pb())
        return answer

    def Invoke(self, request, context):
        try:
            return pb.InvokeResponse(result=self._run(request, context))
        except ActionError as error:
            return pb.InvokeResponse(error=error.to_pb())

    def InvokeStream(self, request, context):
        # gRPC takes the messages of a stream from a generator. The handler runs
        # in another thread and fills a queue.
        instance = self._instance(request, context)
        events = queue.SimpleQueue()

        def run():
            try:
                events.put(pb.InvokeEvent(result=self._run(request, context, instance, events.put)))
            except ActionError as error:
                events.put(pb.InvokeEvent(error=error.to_pb()))
            finally:
                events.put(None)

        threading.Thread(target=run, daemon=True).start()
        while event := events.get():
            yield event

    def _instance(self, request, context):
        instance = self._instances.get(request.instance_id)
        if instance is None:  # a mistake of the host
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"instance {request.instance_id} is not configured")
        if self._draining:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the plugin is shutting down")
        return instance

    def _run(self, request, context, instance=None, emit=None):
        """Runs an action and returns the JSON text of the result, or raises an ActionError."""
        instance = instance or self._instance(request, context)
        with self._changed:
            self._running.add(request.call_id)
        call = Call(request, instance.value, context, self._host, emit)
        token = current_call.set(call)
        try:
            return self._bundle.run(call)
        except ActionError:
            raise
        except Exception as error:
            log.exception("exception in %s", request.action)
            raise ActionError.of(error, request.action) from error
        finally:
            current_call.reset(token)
            with self._changed:
                self._running.discard(request.call_id)
                self._changed.notify_all()

    def Shutdown(self, request, context):
        self._draining = True
        with self._changed:
            drained = self._changed.wait_for(lambda: not self._running, timeout=request.grace_ms / 1000)
        for instance_id in list(self._instances):
            self.Release(pb.ReleaseRequest(instance_id=instance_id), context)
        self._stop()
        if not drained:
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "calls are still running")
        return pb.ShutdownResponse()
