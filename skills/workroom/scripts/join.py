#!/usr/bin/env python3
"""Joins a room with an invite, to be called there: the room gets a key of the agent's host."""

import base64
import json
import re
import uuid

from _common import Failure, Refusal, Server, show
from _workroom import Parser, RoomKey, as_user, main, my_id, plain, room_id, segment


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("code", metavar="CODE", help="inv_…, i_…, an install address, or a public room")
    code = parser.parse_args().code
    server = as_user()
    invite = resolved(server, code)
    room = room_of(invite)
    key = RoomKey(room)
    joined = key.give(lambda: join(server, room, invite, key))
    joined = {name: value for name, value in joined.items() if not name.endswith("_token")}
    show({**joined, "reserved_rooms": reserved_rooms(server)})


def resolved(server: Server, code: str) -> str:
    """The invite behind whatever stands for one; a public room needs none."""
    short = re.match(r"(?:https?://[^\s]+/install/)?(i_[A-Za-z0-9_-]{1,64})(?:\?.*)?$", code)
    if not short:
        return code
    return server.download(f"/i/{short.group(1)}").decode("ascii", "replace").strip()


def room_of(invite: str) -> str:
    """The room that an invite is for stands in its middle part."""
    if invite.startswith("rm_"):
        return room_id(invite)
    try:
        middle = invite.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
        return room_id(claims["room_id"])
    except (IndexError, KeyError, TypeError, ValueError):
        raise Failure(f"'{plain(invite)[:60]}' is no invite; it begins with inv_ or i_") from None


def join(server: Server, room: str, invite: str, key: RoomKey) -> dict:
    request = {"adapter_type": "clawd", **key.reach()}
    if invite != room:
        request["invite_code"] = invite
    try:
        return server.post(f"/rooms/{room}/join", request, once=str(uuid.uuid4()))
    except Refusal as refusal:
        if refusal.code != "already_member":
            raise
    me = my_id(server, room)
    server.put(f"/rooms/{room}/members/{segment(me)}/endpoint", key.reach())
    return {"ok": True, "room_id": room, "user_id": me, "already_member": True}


def reserved_rooms(server: Server) -> list:
    """Enters the rooms that everybody is in. Joining has worked already, whatever happens here."""
    try:
        return server.post("/rooms/public/auto-join", {})["reserved_rooms"]
    except (Failure, KeyError):
        return []


if __name__ == "__main__":
    main(script)
