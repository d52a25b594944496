#!/usr/bin/env python3
"""Lists the rooms that you are in."""

from _workroom import Parser, as_user, main, show


def script() -> None:
    Parser(__doc__).parse_args()
    show(as_user().get("/rooms"))


if __name__ == "__main__":
    main(script)
