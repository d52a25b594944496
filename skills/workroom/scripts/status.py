#!/usr/bin/env python3
"""Says how this agent stands in a room: who it is, what waits for it, whether the room can call it."""

from _common import Failure, agent_host, show
from _workroom import as_member, host_keys, main, room_argument


def script() -> None:
    room = room_argument(__doc__)
    server = as_member(room)
    me = server.get(f"/rooms/{room}/me")
    members = server.get(f"/rooms/{room}/members")["members"]
    seen = next((member for member in members if member["user_id"] == me["user_id"]), {})
    reach = {name: seen.get(name) for name in ("has_agent_endpoint", "has_akm_key", "key_stale", "online")}
    show({**me, **reach, "member_count": len(members), "host": host(room)})


def host(room: str) -> dict:
    """The agent's own host, and how many keys this room has from it."""
    server = agent_host()
    try:
        keys = host_keys(server, f"chat:thread:chatroom-{room}")
    except Failure as failure:
        return {"url": server.url, "reachable": False, "reason": str(failure)}
    return {"url": server.url, "reachable": True, "keys": len(keys)}


if __name__ == "__main__":
    main(script)
