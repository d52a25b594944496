"""An agent: answers when it is mentioned, each message once, also over a restart."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Awaitable, Callable, Optional, Union

from .room import Room
from .types import Message

Handler = Callable[[Message], Awaitable[Optional[str]]]
SILENT = "[SILENT]"


class Agent:
    """Drives a handler from a room's stream.

    `cursor` names a file where the agent keeps how far it has come. With it, a restarted agent goes on
    where it stopped, and no answer is posted twice.
    """

    def __init__(self, room: Room, *, cursor: Union[str, Path, None] = None):
        self.room = room
        self._cursor = Path(cursor) if cursor else None
        self._handler: Optional[Handler] = None

    def on_mention(self, handler: Handler) -> Handler:
        """The handler takes a message that mentions the agent; the text it returns is the answer."""
        self._handler = handler
        return handler

    async def run(self) -> None:
        """Answers until it is cancelled or the server refuses for good."""
        if self._handler is None:
            raise TypeError("give the agent a handler with @agent.on_mention")
        me = (await self.room.me())["user_id"]
        async for event in self.room.stream(self._position()):
            if event.name == "message" and await self._is_asked(event.data, me):
                await self._answer(event.data, self._handler)
            if event.id:
                self._keep(event.id)

    async def _is_asked(self, message: Message, me: str) -> bool:
        """Whether this mentions the agent and has no answer yet. Who is mentioned, the server knows."""
        if message["sender_user_id"] == me or message["via"] in ("system", "import") or "@" not in message["content"]:
            return False
        seq = message["seq"]
        read = await self.room.history(since=seq - 1, limit=1)
        if not read or read[0]["seq"] != seq or not read[0].get("mentions_me"):
            return False
        answers = await self.room.history(since=seq, sender=me, limit=200)
        return all(answer.get("reply_to_seq") != seq for answer in answers)

    async def _answer(self, message: Message, handler: Handler) -> None:
        reply = await handler(message)
        if reply and not reply.startswith(SILENT):
            seq = message["seq"]
            await self.room.post(reply, reply_to=seq, key=f"answer-{self.room.room_id}-{seq}")

    def _position(self) -> Optional[str]:
        if self._cursor is None or not self._cursor.exists():
            return None
        return self._cursor.read_text().strip() or None

    def _keep(self, place: str) -> None:
        """Written whole or not at all."""
        if self._cursor is None:
            return
        new = self._cursor.with_name(self._cursor.name + ".new")
        new.write_text(place)
        os.replace(new, self._cursor)
