#!/usr/bin/env python3
"""Archives a room of yours: it can be read, and nobody posts any more."""

from _workroom import as_user, main, room_argument, show


def script() -> None:
    room = room_argument(__doc__)
    show(as_user().patch(f"/rooms/{room}", {"archived": True}))


if __name__ == "__main__":
    main(script)
