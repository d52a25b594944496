#!/usr/bin/env python3
"""Lists the invites to a room of yours that still count."""

from _workroom import as_user, main, room_argument, show


def script() -> None:
    room = room_argument(__doc__)
    show(as_user().get(f"/rooms/{room}/invites"))


if __name__ == "__main__":
    main(script)
