"""A room's events as they happen: each once, in order, over broken connections and restarts."""

from __future__ import annotations

import asyncio
import codecs
import json
from typing import Any, AsyncIterator, List, NamedTuple, Optional, Tuple

import httpx

from .errors import StarchildError
from .http import TRANSIENT, Backoff, Http, refusal

MOST_CHARS = 4 * 1024 * 1024
# The server says something every 15 seconds.
SILENCE_SECONDS = 45.0


class Event(NamedTuple):
    """What happened: `message`, `message_edited`, `reaction_added`, … `id` is where to go on from."""

    name: str
    data: Any
    id: Optional[str] = None


class Decoder:
    """Bytes of a stream to events, as the HTML standard reads them."""

    def __init__(self) -> None:
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest, self._after_cr = "", False
        self._name, self._data, self._id = "", [], None  # type: str, List[str], Optional[str]
        self._size = 0

    def feed(self, chunk: bytes) -> List[Event]:
        text = self._text.decode(chunk)
        if self._after_cr and text:
            text, self._after_cr = (text[1:] if text[0] == "\n" else text), False
        self._after_cr = self._after_cr or text.endswith("\r")
        lines = (self._rest + text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
        self._rest = lines.pop()
        if len(self._rest) + self._size > MOST_CHARS:
            raise StarchildError("an event of the stream is too large")
        return [event for event in map(self._line, lines) if event]

    def _line(self, line: str) -> Optional[Event]:
        if not line:
            name, data, place = self._name, self._data, self._id
            self._name, self._data, self._id, self._size = "", [], None, 0
            return Event(name or "message", _parsed("\n".join(data)), place) if data else None
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        self._size += len(value)
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        elif field == "id":
            self._id = value
        return None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def place(cursor: str) -> Tuple[int, int]:
    """Where a cursor stands: `43` is the message, `43.1` what happened after it."""
    seq, _, sub = cursor.partition(".")
    return int(seq), int(sub or 0)


async def events(http: Http, room: str, since: str) -> AsyncIterator[Event]:
    """Everything after `since`. It ends only where the server refuses for good."""
    cursor, backoff = since, Backoff()
    while True:
        wait = None
        try:
            async for event in _connection(http, room, cursor):
                backoff.reset()
                if event.name == "resync":
                    async for missed in _missed(http, room, place(cursor)[0]):
                        cursor = missed.id or cursor
                        yield missed
                elif event.id is None:
                    yield event
                elif place(event.id) > place(cursor):
                    cursor = event.id
                    yield event
        except _TryLater as later:
            wait = backoff.wait(later.response)
        except httpx.TransportError:
            pass
        await asyncio.sleep(backoff.wait() if wait is None else wait)


class _TryLater(Exception):
    def __init__(self, response: httpx.Response):
        super().__init__(response.status_code)
        self.response = response


async def _connection(http: Http, room: str, cursor: str) -> AsyncIterator[Event]:
    """The events of one connection, until it ends."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": cursor}
    timeout = httpx.Timeout(30.0, read=SILENCE_SECONDS)
    path = f"/rooms/{room}/stream"
    async with http.client.stream("GET", path, headers=headers, timeout=timeout) as response:
        if response.status_code in TRANSIENT:
            raise _TryLater(response)
        if not response.is_success:
            await response.aread()
            raise refusal(response)
        decoder = Decoder()
        async for chunk in response.aiter_bytes():
            for event in decoder.feed(chunk):
                yield event


async def _missed(http: Http, room: str, since: int) -> AsyncIterator[Event]:
    """The messages that a stream could not replay, read anew."""
    while True:
        query = {"since": since, "limit": 200}
        page = (await http.request("GET", f"/rooms/{room}/messages", params=query))["messages"]
        for message in page:
            since = message["seq"]
            yield Event("message", message, str(since))
        if len(page) < 200:
            return
