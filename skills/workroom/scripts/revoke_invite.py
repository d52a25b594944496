#!/usr/bin/env python3
"""Ends an invite to a room of yours."""

from _workroom import Parser, as_user, main, room_id, segment, show


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("room", metavar="ROOM", type=room_id)
    parser.add_argument("jti", metavar="JTI", help="as list_invites.py shows it")
    args = parser.parse_args()
    show(as_user().delete(f"/rooms/{args.room}/invites/{segment(args.jti)}"))


if __name__ == "__main__":
    main(script)
