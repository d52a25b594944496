#!/usr/bin/env python3
"""Ends one of your keys to look into a room, or all of them."""

from _workroom import Parser, as_user, main, room_id, segment, show


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("room", metavar="ROOM", type=room_id)
    parser.add_argument("jti", metavar="JTI", nargs="?", help="as list_room_keys.py shows it")
    args = parser.parse_args()
    one = f"/{segment(args.jti)}" if args.jti else ""
    show(as_user().delete(f"/rooms/{args.room}/room-keys{one}"))


if __name__ == "__main__":
    main(script)
