#!/usr/bin/env python3
"""Has the room call this agent: makes a key on the agent's host and gives it to the room."""

from _workroom import main, room_argument, set_endpoint, show


def script() -> None:
    room = room_argument(__doc__)
    show(set_endpoint(room, whole=True))


if __name__ == "__main__":
    main(script)
