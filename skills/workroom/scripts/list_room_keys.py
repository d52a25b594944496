#!/usr/bin/env python3
"""Lists your own keys to look into a room."""

from _workroom import as_user, main, room_argument, show


def script() -> None:
    room = room_argument(__doc__)
    show(as_user().get(f"/rooms/{room}/room-keys"))


if __name__ == "__main__":
    main(script)
