#!/usr/bin/env python3
"""Replaces the key that the room calls this agent with. The older ones end."""

from _workroom import main, room_argument, set_endpoint, show


def script() -> None:
    room = room_argument(__doc__)
    show(set_endpoint(room, whole=False))


if __name__ == "__main__":
    main(script)
