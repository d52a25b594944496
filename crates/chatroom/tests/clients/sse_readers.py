"""Reads a room's stream with two libraries: sse_readers.py SERVER ROOM TOKEN. Each gets the opening event and then
the message; nothing in between makes either of them see an event without data."""

import json
import sys
import threading

import httpx
import httpx_sse
import sseclient

server, room, token = sys.argv[1:]
address = f"{server}/rooms/{room}/stream"
headers = {"Authorization": f"Bearer {token}"}


def post_later() -> None:
    # After at least two signs of life.
    threading.Timer(
        2.5, lambda: httpx.post(f"{server}/rooms/{room}/messages", headers=headers, json={"content": "hello"})
    ).start()


def check(events) -> None:
    names = []
    for event in events:
        value = json.loads(event.data)
        names.append(event.event)
        assert event.id, event
        if event.event == "message":
            assert value["content"] == "hello", value
            break
    assert names == ["ready", "message"], names


with httpx.Client(timeout=20) as http:
    with httpx_sse.connect_sse(http, "GET", address, headers=headers) as source:
        post_later()
        check(source.iter_sse())
    with http.stream("GET", address, headers=headers) as response:
        post_later()
        check(sseclient.SSEClient(response.iter_bytes()).events())
print("read")
