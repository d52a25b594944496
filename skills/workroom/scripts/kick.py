#!/usr/bin/env python3
"""Removes a member from a room of yours. A reason is posted there."""

from _common import Failure, show
from _workroom import Parser, as_user, main, post_message, room_id, segment


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("room", metavar="ROOM", type=room_id)
    parser.add_argument("user", metavar="USER")
    parser.add_argument("--reason", metavar="S", default="")
    args = parser.parse_args()
    server = as_user()
    server.delete(f"/rooms/{args.room}/members/{segment(args.user)}")
    kicked = {"ok": True, "room_id": args.room, "user_id": args.user}
    if args.reason:
        kicked["reason_posted"] = tell(server, args)
    show(kicked)


def tell(server, args) -> bool:
    """The member is gone already; a limit on posting does not bring them back."""
    try:
        post_message(server, args.room, f"{args.user} was removed: {args.reason}")
    except Failure:
        return False
    return True


if __name__ == "__main__":
    main(script)
