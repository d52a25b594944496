"""A room, seen by one of its members."""

from __future__ import annotations

import base64
import json
import re
import uuid
from typing import Any, AsyncIterator, Dict, List, Optional
from urllib.parse import quote, urlsplit

from .errors import StarchildError
from .http import Http, answer
from .stream import Event, events
from .types import Joined, Me, Message, Posted


class Room:
    """Reads, posts and follows with a member's token. Use it with `async with`, or close it."""

    def __init__(self, server: str, room_id: str, token: str, *, patience: float = 120.0):
        if not re.fullmatch(r"rm_[A-Za-z0-9_-]{1,64}", room_id):
            raise StarchildError(f"{room_id!r} is no room; it begins with rm_")
        self.room_id, self.token = room_id, token
        self._http = Http(server, token, patience=patience)
        self._path = f"/rooms/{room_id}"

    @classmethod
    async def join(cls, server: str, invite: str, *, user_id: str, display_name: Optional[str] = None) -> "Room":
        """Joins with an invite code, a short code or an install address. Keep `room.token`."""
        http = Http(server)
        try:
            code = await _invite_code(http, invite)
            room_id = _room_of(code)
            request = {"invite_code": code, "adapter_type": "pull", "user_id": user_id}
            if display_name:
                request["display_name"] = display_name
            headers = {"Idempotency-Key": str(uuid.uuid4())}
            joined: Joined = await http.request("POST", f"/rooms/{room_id}/join", json=request, headers=headers)
        finally:
            await http.close()
        return cls(server, room_id, joined.get("member_token") or "")

    async def __aenter__(self) -> "Room":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.close()

    async def me(self) -> Me:
        """Who the token's member is here."""
        me: Me = await self._http.request("GET", f"{self._path}/me")
        return me

    async def post(self, content: str, *, reply_to: Optional[int] = None, key: Optional[str] = None) -> Posted:
        """Posts once, however often it has to be tried. The same `key` never posts twice."""
        body: Dict[str, Any] = {"content": content}
        if reply_to is not None:
            body["reply_to_seq"] = reply_to
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        posted: Posted = await self._http.request("POST", f"{self._path}/messages", json=body, headers=headers)
        return posted

    async def history(
        self,
        *,
        since: Optional[int] = None,
        before: Optional[int] = None,
        limit: int = 50,
        mentions_me: bool = False,
        sender: Optional[str] = None,
    ) -> List[Message]:
        """Messages, oldest first: those after `since`, or the newest, or the newest before `before`."""
        query: Dict[str, Any] = {"limit": limit}
        if since is None:
            query["before"] = before if before is not None else 2**53 - 1
        else:
            query["since"] = since
        if mentions_me:
            query["mentions"] = "me"
        if sender is not None:
            query["sender_user_id"] = sender
        messages: List[Message] = (await self._http.request("GET", f"{self._path}/messages", params=query))["messages"]
        return messages

    async def react(self, seq: int, emoji: str) -> None:
        """Adds a reaction; twice is once."""
        await self._http.request("POST", f"{self._path}/messages/{seq}/reactions", json={"emoji": emoji})

    async def unreact(self, seq: int, emoji: str) -> None:
        """Takes one's own reaction back."""
        await self._http.request("DELETE", f"{self._path}/messages/{seq}/reactions/{quote(emoji, safe='')}")

    async def stream(self, since: Optional[str] = None) -> AsyncIterator[Event]:
        """Every event after `since` (an event's id, or a seq), or from now on; each once, in order."""
        if since is None:
            newest = await self.history(limit=1)
            since = str(newest[-1]["seq"]) if newest else "0"
        async for event in events(self._http, self.room_id, since):
            yield event


async def _invite_code(http: Http, invite: str) -> str:
    """The invite code behind whatever stands for one."""
    short = urlsplit(invite).path.rsplit("/", 1)[-1]
    if not short.startswith("i_"):
        return invite
    response = await http.client.get(f"/i/{quote(short, safe='')}")
    if not response.is_success:
        answer(response)
    return response.text.strip()


def _room_of(code: str) -> str:
    """The room that an invite is for stands in its middle part."""
    try:
        middle = code.split(".")[1]
        return str(json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))["room_id"])
    except (IndexError, KeyError, TypeError, ValueError):
        raise StarchildError("this is no invite; it begins with inv_ or i_") from None
