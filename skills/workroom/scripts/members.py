#!/usr/bin/env python3
"""Lists who is in a room."""

from _workroom import as_member, main, room_argument, show


def script() -> None:
    room = room_argument(__doc__)
    show(as_member(room).get(f"/rooms/{room}/members"))


if __name__ == "__main__":
    main(script)
