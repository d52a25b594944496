#!/usr/bin/env python3
"""Creates a room, which is yours."""

from _workroom import Parser, as_user, main, show


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("name", metavar="NAME", nargs="+")
    parser.add_argument("--public", action="store_true", help="anybody may read it")
    args = parser.parse_args()
    visibility = "public" if args.public else "private"
    show(as_user().post("/rooms", {"name": " ".join(args.name), "visibility": visibility}))


if __name__ == "__main__":
    main(script)
