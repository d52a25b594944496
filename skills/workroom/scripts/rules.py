#!/usr/bin/env python3
"""Prints a room's rules with their version."""

from _workroom import as_member, main, room_argument, show


def script() -> None:
    room = room_argument(__doc__)
    show(as_member(room).get(f"/rooms/{room}/rules"))


if __name__ == "__main__":
    main(script)
