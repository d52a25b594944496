"""Speaks with an agent over A2A 0.3 with the project's own SDK of that version, and prints what came of
it.

Usage: older_client.py AGENT TOKEN PUSH_URL

The agent answers what is said to it; to what holds the word "wait" it does not.
"""

import asyncio
import json
import sys
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    MessageSendConfiguration,
    Part,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)


def message(text):
    return Message(
        message_id=str(uuid4()), role=Role.user, parts=[Part(root=TextPart(text=text))]
    )


def shown(thing):
    return json.loads(thing.model_dump_json(exclude_none=True, by_alias=True))


async def drained(events, begun=None):
    got = []
    async for event in events:
        got.append(event)
        if begun:
            begun.set()
    return got


async def refused(awaited):
    try:
        result = await awaited
    except Exception as error:  # noqa: BLE001
        return str(error)
    return f"not refused: {result}"


async def main(agent, token, push):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(trust_env=False, timeout=60, headers=headers) as http:
        card = await A2ACardResolver(http, agent).get_agent_card()

        def client(streaming):
            config = ClientConfig(streaming=streaming, httpx_client=http)
            return ClientFactory(config).create(card)

        asks, streams = client(False), client(True)
        told = {"card": shown(card)}
        asked, _ = (await drained(asks.send_message(message("Say hello"))))[-1]
        told["asked"] = shown(asked)
        told["got"] = shown(await asks.get_task(TaskQueryParams(id=asked.id)))
        events = await drained(streams.send_message(message("Say hello")))
        told["streamed"] = shown(events[-1][0])

        at_once = MessageSendConfiguration(blocking=False)
        sent = asks.send_message(message("wait for me"), configuration=at_once)
        waiting, _ = (await drained(sent))[-1]
        told["waiting"] = shown(waiting)
        config = TaskPushNotificationConfig(
            task_id=waiting.id,
            push_notification_config=PushNotificationConfig(url=push, token="older", id="mine"),
        )
        told["made"] = shown(await asks.set_task_callback(config))
        told["push"] = shown(
            await asks.get_task_callback(GetTaskPushNotificationConfigParams(id=waiting.id))
        )
        begun = asyncio.Event()
        following = asyncio.create_task(
            drained(streams.resubscribe(TaskIdParams(id=waiting.id)), begun)
        )
        await asyncio.wait_for(begun.wait(), 60)
        told["canceled"] = shown(await asks.cancel_task(TaskIdParams(id=waiting.id)))
        told["followed"] = shown((await following)[-1][0])
        told["unknown"] = await refused(asks.get_task(TaskQueryParams(id="rm_nowhere.7")))
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
