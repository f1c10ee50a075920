"""Talks to an agent with the A2A SDK: `client.py URL VERSION TOKEN`.

Prints what a user of the SDK sees, one line for each result.
"""

import asyncio
import sys

import httpx
from a2a.client import ClientConfig, create_client
from a2a.helpers.proto_helpers import get_artifact_text, get_message_text, new_text_message
from a2a.types.a2a_pb2 import AgentCard, CancelTaskRequest, GetTaskRequest, Role, SendMessageRequest, SubscribeToTaskRequest, TaskState
from a2a.client.card_resolver import A2ACardResolver
from a2a.utils.errors import A2AError


def state(status):
    text = TaskState.Name(status.state).removeprefix("TASK_STATE_")
    if status.HasField("message"):
        text += ": " + get_message_text(status.message)
    return text


def message(text, message_id, task_id=""):
    m = new_text_message(text, role=Role.ROLE_USER)
    m.message_id, m.task_id = message_id, task_id
    return SendMessageRequest(message=m)


async def show(name, events):
    """Prints the events, and returns the id of the task."""
    task_id = ""
    async for e in events:
        kind = e.WhichOneof("payload")
        if kind == "task":
            task_id = e.task.id
            print(name, "task", state(e.task.status) if len(e.task.artifacts) or "INPUT" in state(e.task.status) else "begun")
            for artifact in e.task.artifacts:
                print(name, "result", get_artifact_text(artifact))
        elif kind == "status_update":
            print(name, "status", state(e.status_update.status))
        elif kind == "artifact_update":
            print(name, "artifact", get_artifact_text(e.artifact_update.artifact))
    return task_id


async def main(url, version, token):
    async with httpx.AsyncClient(headers={"Authorization": "Bearer " + token}, timeout=60) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        print("card", card.name, card.description, card.skills[0].id, list(card.security_schemes))
        for interface in list(card.supported_interfaces):
            if interface.protocol_version != version:
                card.supported_interfaces.remove(interface)
        streaming = await create_client(card, ClientConfig(httpx_client=http, streaming=True))
        plain = await create_client(card, ClientConfig(httpx_client=http, streaming=False))

        task = await show("send", plain.send_message(message("go", version + "-1")))
        again = await show("again", plain.send_message(message("go", version + "-1")))
        print("again", "the same task" if again == task else "another task")
        await show("answer", streaming.send_message(message("blue", version + "-2", task)))
        await show("answer", plain.send_message(message("3", version + "-3", task)))
        got = await plain.get_task(GetTaskRequest(id=task))
        print("get", state(got.status), got.artifacts[0].parts[1].data.struct_value["count"])

        task = await show("stream", streaming.send_message(message("go", version + "-4")))
        await show("subscribe", streaming.subscribe(SubscribeToTaskRequest(id=task)))
        print("cancel", state((await plain.cancel_task(CancelTaskRequest(id=task))).status))
        for what, call in ("cancel", plain.cancel_task(CancelTaskRequest(id=task))), ("get", plain.get_task(GetTaskRequest(id="gone"))):
            try:
                await call
            except A2AError as e:
                print(what, type(e).__name__)


asyncio.run(main(*sys.argv[1:]))
