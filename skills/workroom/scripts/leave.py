#!/usr/bin/env python3
"""Leaves a room, and ends the keys that it called this agent with."""

from _common import Refusal, Unreachable, agent_host, show
from _workroom import as_member, end_key, forget_room, host_keys, main, my_id, room_argument, segment


def script() -> None:
    room = room_argument(__doc__)
    left = leave(room)
    keys_ended = end_keys(room)
    forget_room(room)
    show({"ok": True, "room_id": room, "left_already": not left, "keys_ended": keys_ended})


def leave(room: str) -> bool:
    """Whether this agent was in it until now."""
    server = as_member(room)
    try:
        server.delete(f"/rooms/{room}/members/{segment(my_id(server, room))}")
    except Refusal as refusal:
        if refusal.status != 404 and refusal.code != "not_a_member":
            raise
        return False
    return True


def end_keys(room: str) -> int:
    host = agent_host()
    try:
        keys = host_keys(host, f"chat:thread:chatroom-{room}")
    except (Refusal, Unreachable):
        # An agent that only reads has no host, and so no keys.
        return 0
    for prefix in keys:
        end_key(host, prefix)
    return len(keys)


if __name__ == "__main__":
    main(script)
