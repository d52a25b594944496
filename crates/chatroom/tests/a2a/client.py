"""Speaks with an agent over A2A 1.0 with the project's own SDK, and prints what came of it.

Usage: client.py AGENT TOKEN JSONRPC|HTTP+JSON PUSH_URL

The agent answers what is said to it; to what holds the word "wait" it does not.
"""

import asyncio
import json
import sys
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import MessageToDict


def request(text, *, at_once=False, history=None, push=None, context=None, task=None):
    message = Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)])
    if context:
        message.context_id = context
    if task:
        message.task_id = task
    asked = SendMessageRequest(message=message)
    asked.configuration.return_immediately = at_once
    if history is not None:
        asked.configuration.history_length = history
    if push:
        asked.configuration.task_push_notification_config.CopyFrom(
            TaskPushNotificationConfig(url=push, token="secret-of-the-client")
        )
    return asked


async def only(events):
    return [event async for event in events][-1].task


async def refused(awaited):
    try:
        result = await awaited
    except Exception as error:  # noqa: BLE001
        return type(error).__name__
    return f"not refused: {result}"


async def drained(events, begun=None):
    got = []
    async for event in events:
        got.append(event)
        if begun:
            begun.set()
    return got


async def main(agent, token, binding, push):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(trust_env=False, timeout=60, headers=headers) as http:
        card = await A2ACardResolver(http, agent).get_agent_card()
        validate_proto_required_fields(card)

        def client(streaming):
            config = ClientConfig(
                streaming=streaming,
                httpx_client=http,
                supported_protocol_bindings=[binding],
                use_client_preference=True,
            )
            return ClientFactory(config).create(card)

        asks, streams = client(False), client(True)
        told = {"card": MessageToDict(card)}
        asked = await only(asks.send_message(request("Say hello")))
        told["asked"] = MessageToDict(asked)
        told["without_history"] = MessageToDict(
            await asks.get_task(GetTaskRequest(id=asked.id, history_length=0))
        )
        again = await only(asks.send_message(request("Once more", context=asked.context_id)))
        told["again"] = MessageToDict(again)
        events = await drained(streams.send_message(request("Say hello")))
        told["streamed"] = [MessageToDict(event) for event in events]
        for event in events:
            validate_proto_required_fields(event)

        waiting = await only(asks.send_message(request("wait for me", at_once=True, push=push)))
        told["waiting"] = MessageToDict(waiting)
        begun = asyncio.Event()
        following = asyncio.create_task(
            drained(streams.subscribe(SubscribeToTaskRequest(id=waiting.id)), begun)
        )
        first = TaskPushNotificationConfig(
            task_id=waiting.id, url=push, token="another", id="mine"
        )
        first.authentication.scheme = "Bearer"
        first.authentication.credentials = "of-the-receiver"
        made = await asks.create_task_push_notification_config(first)
        named = GetTaskPushNotificationConfigRequest(task_id=waiting.id, id=made.id)
        told["push"] = MessageToDict(await asks.get_task_push_notification_config(named))
        every = ListTaskPushNotificationConfigsRequest(task_id=waiting.id)
        listed = await asks.list_task_push_notification_configs(every)
        told["pushes"] = len(listed.configs)
        extra = TaskPushNotificationConfig(task_id=waiting.id, url=push, id="extra")
        await asks.create_task_push_notification_config(extra)
        gone = DeleteTaskPushNotificationConfigRequest(task_id=waiting.id, id="extra")
        await asks.delete_task_push_notification_config(gone)
        await asks.delete_task_push_notification_config(gone)
        listed = await asks.list_task_push_notification_configs(every)
        told["pushes_left"] = len(listed.configs)

        await asyncio.wait_for(begun.wait(), 60)
        canceled = await asks.cancel_task(CancelTaskRequest(id=waiting.id))
        told["canceled"] = MessageToDict(canceled)
        told["followed"] = [MessageToDict(event) for event in await following]
        page = await asks.list_tasks(ListTasksRequest(page_size=2, include_artifacts=True))
        told["listed"] = MessageToDict(page)

        over = SubscribeToTaskRequest(id=asked.id)
        told["errors"] = {
            "unknown": await refused(asks.get_task(GetTaskRequest(id="rm_nowhere.7"))),
            "canceled": await refused(asks.cancel_task(CancelTaskRequest(id=waiting.id))),
            "over": await refused(drained(streams.subscribe(over))),
            "more": await refused(only(asks.send_message(request("more", task=asked.id)))),
            "strange": await refused(only(asks.send_message(request("x", task="rm_nowhere.7")))),
            "empty": await refused(only(asks.send_message(SendMessageRequest()))),
        }
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
