import os
import signal
import sys
import tempfile
import threading
from concurrent import futures

import grpc

from .bundle import Bundle
from .lifetime import end_with_host
from .logs import send_logs_to_host
from .proto import go_plugin_broker_pb2_grpc as broker_grpc
from .proto import plugin_pb2_grpc as pb_grpc
from .service import MESSAGE_LIMITS, Broker, Plugin

COOKIE = ("TEA_PLUGIN_COOKIE", "tea.plugin.v1")


def serve(bundle: Bundle) -> None:
    """Serves a bundle until the host shuts the plugin down."""
    if os.environ.get(COOKIE[0]) != COOKIE[1]:
        print(
            f"This is tea-plugin-{bundle.name} {bundle.version}, a plugin with actions for tea workflows.\n"
            "It is not started by hand: tea starts it when a workflow uses one of its actions.\n"
            "Put it into a directory and name that with --plugins.", file=sys.stderr)
        sys.exit(2)
    end_with_host()
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C reaches all processes; the host decides when to end
    send_logs_to_host()
    # A running call keeps a thread, and a health check must not wait for one.
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1000), options=MESSAGE_LIMITS)
    broker = Broker()
    # The answer of the shutdown is sent before the server stops.
    plugin = Plugin(bundle, broker, stop=lambda: threading.Timer(0.05, server.stop, [0.2]).start())
    broker_grpc.add_GRPCBrokerServicer_to_server(broker, server)
    pb_grpc.add_PluginServicer_to_server(plugin, server)
    directory = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp(prefix="tea")
    socket = os.path.join(directory, f"plugin{os.getpid()}")
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    # The first line on stdout tells the host where to connect. Everything after
    # it is output like any other.
    print(f"1|1|unix|{socket}|grpc", flush=True)
    sys.stdout.reconfigure(line_buffering=True)
    server.wait_for_termination()
    os._exit(0)  # also with threads that handlers have left behind
