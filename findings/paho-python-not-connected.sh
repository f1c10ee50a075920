#!/bin/sh
# paho-mqtt 2.2.0 (Python): a message that publish() has refused is delivered later.
#
# Without a connection, publish() returns the code 4, "The client is not currently
# connected", for every quality of service. With QoS 0 the message is lost. With QoS 1 and
# 2 it is kept nevertheless and sent when the client connects: a program that publishes
# again after the error delivers the message twice, even with QoS 2.
#
# A good guess: a message for which publish() returns an error is not sent.
#
# Seen on 29 November 2026:
#   QoS 0: The client is not currently connected.
#   QoS 1: The client is not currently connected.
#   QoS 2: The client is not currently connected.
#   delivered after connecting: QoS 1, QoS 2, end
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q "paho-mqtt==2.2.0" "amqtt==0.12.1" >&2
cat >finding.py <<'PY'
import asyncio
import logging
import os
import socket
import threading

import paho.mqtt.client as mqtt
from amqtt.broker import Broker

logging.disable(logging.CRITICAL)
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]


async def serve():
    plugins = {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}
    broker = Broker({"listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}}, "plugins": plugins})
    await broker.start()


loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
asyncio.run_coroutine_threadsafe(serve(), loop).result(60)

received, subscribed, ended = [], threading.Event(), threading.Event()


def take(client, data, message):
    received.append(message.payload.decode())
    if received[-1] == "end":
        ended.set()


reader = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "reader")
reader.on_connect = lambda client, *_: client.subscribe("pump", 1)
reader.on_subscribe = lambda *_: subscribed.set()
reader.on_message = take
reader.connect("127.0.0.1", port)
reader.loop_start()
assert subscribed.wait(60)

writer = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "writer")
for qos in range(3):
    print(f"QoS {qos}: {mqtt.error_string(writer.publish('pump', f'QoS {qos}', qos).rc)}")
writer.publish("pump", "end", 2)
writer.connect("127.0.0.1", port)
writer.loop_start()
assert ended.wait(60)
print("delivered after connecting:", ", ".join(received), flush=True)
os._exit(0)
PY
venv/bin/python -W ignore finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
