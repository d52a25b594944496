#!/usr/bin/env python3
"""Makes a link with which a person looks into a room and posts there. It is a credential."""

from _common import Failure, Refusal
from _workroom import Parser, as_user, main, my_id, public_address, room_id, show


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("room", metavar="ROOM", type=room_id)
    parser.add_argument("--rotate", action="store_true", help="end the older ones first")
    args = parser.parse_args()
    server = as_user()
    path = f"/rooms/{args.room}/room-keys"
    if args.rotate:
        server.delete(path)
    try:
        key = server.post(path, {"for_user_id": my_id(server, args.room)})
    except Refusal as refusal:
        if refusal.code != "too_many_keys":
            raise
        raise Failure(f"{refusal} With --rotate the older ones end.") from None
    for name in ("viewer_url", "direct_url"):
        if name in key:
            key[name] = public_address(key[name])
    show(key)


if __name__ == "__main__":
    main(script)
