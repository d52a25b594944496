#!/usr/bin/env python3
"""Posts a message. A text that is - comes from standard input."""

import argparse

from _common import Failure
from _workroom import Parser, as_member, main, post_message, room_id, show, standard_input


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("room", metavar="ROOM", type=room_id)
    parser.add_argument("text", metavar="TEXT", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    words = args.text[1:] if args.text[:1] == ["--"] else args.text
    if not words:
        raise Failure("say what to send: send.py ROOM TEXT…")
    text = standard_input() if words == ["-"] else " ".join(words)
    show(post_message(as_member(args.room), args.room, text))


if __name__ == "__main__":
    main(script)
