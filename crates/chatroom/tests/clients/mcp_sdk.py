"""Takes part in a room with MCP's Python SDK: mcp_sdk.py MODE SERVER ROOM TOKEN POSTER_TOKEN, where MODE is a version
of the protocol, or `auto`, or `legacy`. POSTER_TOKEN is another member's, who mentions the one that waits."""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

mode, server, room, token, poster = sys.argv[1:]
TOOLS = {
    "list_rooms", "read_messages", "search_messages", "read_thread", "post_message", "react", "list_members",
    "who_am_i", "get_rules", "set_rules", "get_data", "set_data", "wait_for_mention",
}


async def post(content: str) -> None:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {poster}"}) as http:
        answer = await http.post(f"{server}/rooms/{room}/messages", json={"content": content})
        assert answer.status_code == 201, answer.text


async def call(client: Client, name: str, **arguments):
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    value = result.structured_content
    assert json.loads(result.content[0].text) == value
    return value


async def take_part(client: Client) -> None:
    tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS, tools
    rooms = (await call(client, "list_rooms"))["rooms"]
    assert room in [one["room_id"] for one in rooms], rooms
    me = await call(client, "who_am_i", room_id=room)
    first = await call(client, "post_message", room_id=room, content=f"hello from {mode}", idempotency_key=f"sdk-{mode}")
    again = await call(client, "post_message", room_id=room, content=f"hello from {mode}", idempotency_key=f"sdk-{mode}")
    assert first["seq"] == again["seq"] and first["via"] == "agent", (first, again)
    reply = await call(client, "post_message", room_id=room, content="and more", reply_to_seq=first["seq"])
    thread = (await call(client, "read_thread", room_id=room, seq=reply["seq"]))["thread"]
    assert [message["seq"] for message in thread] == [first["seq"], reply["seq"]], thread
    assert (await call(client, "react", room_id=room, seq=first["seq"], emoji="👍"))["added"]
    assert (await call(client, "react", room_id=room, seq=first["seq"], emoji="👍", remove=True))["removed"]
    page = await call(client, "read_messages", room_id=room, limit=1)
    assert page["messages"][-1]["content"] == "and more", page
    members = (await call(client, "list_members", room_id=room))["members"]
    assert me["user_id"] in [member["user_id"] for member in members], members
    refused = await client.call_tool("set_rules", {"room_id": room, "content": "mine now"})
    assert refused.is_error and "key_scope_insufficient" in refused.content[0].text, refused
    refused = await client.call_tool("post_message", {"room_id": room})
    assert refused.is_error and "content" in refused.content[0].text, refused

    resources = (await client.list_resources()).resources
    assert f"room://{room}/rules" in [str(resource.uri) for resource in resources], resources
    rules = await client.read_resource(f"room://{room}/rules")
    assert rules.contents[0].text == "Be kind.", rules
    prompt = await client.get_prompt("join_room", {"room_id": room})
    assert "Be kind." in prompt.messages[0].content.text, prompt

    heard = []
    async def progress(done: float, total: float | None, words: str | None) -> None:
        heard.append(words)
        if len(heard) == 2:
            await post(f"{me['mention_key']} are you there?")
    waited = await client.call_tool(
        "wait_for_mention", {"room_id": room, "timeout_seconds": 60}, progress_callback=progress
    )
    mentions = waited.structured_content["mentions"]
    assert [one["message"]["content"] for one in mentions] == [f"{me['mention_key']} are you there?"], waited
    assert len(heard) >= 2 and "no mention yet" in heard[0], heard


async def main() -> None:
    headers = {"Authorization": f"Bearer {token}"}
    changed = asyncio.Event()

    async def message_handler(message) -> None:
        if "ResourceUpdated" in type(message).__name__ or "resources/updated" in str(message):
            changed.set()

    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{server}/mcp", http_client=http)
        async with Client(transport, mode=mode, message_handler=message_handler) as client:
            await take_part(client)
            uri = f"room://{room}"
            if mode == "legacy":
                await client.subscribe_resource(uri)
                # Told of on a stream of its own, which opens a moment later.
                for _ in range(20):
                    await post("something new")
                    try:
                        await asyncio.wait_for(changed.wait(), 1)
                        break
                    except TimeoutError:
                        pass
                assert changed.is_set()
            else:
                async with client.listen(resource_subscriptions=[uri]) as subscription:
                    async def later() -> None:
                        for _ in range(20):
                            await asyncio.sleep(0.5)
                            await post("something new")
                    posting = asyncio.create_task(later())
                    event = await asyncio.wait_for(anext(aiter(subscription)), 20)
                    assert uri in str(event), event
                    posting.cancel()
    print("took part")


asyncio.run(main())
