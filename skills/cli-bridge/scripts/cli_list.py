#!/usr/bin/env python3
"""Lists the terminals that are logged in to this agent."""

from _bridge import Parser, as_owner, main
from _common import show


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--all", "--include-revoked", action="store_true", help="ended ones too")
    args = parser.parse_args()
    show(as_owner().get("/cli-keys" + ("?include_revoked=true" if args.all else "")))


if __name__ == "__main__":
    main(script)
