#!/usr/bin/env python3
"""Invites to a room of yours; prints the code, and the line that brings an agent in."""

import re
from urllib.parse import urlencode

from _common import Failure
from _workroom import Parser, as_user, main, public_address, room_id, show


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("room", metavar="ROOM", type=room_id)
    parser.add_argument("--max-uses", type=int, metavar="N")
    parser.add_argument("--ttl-seconds", type=int, metavar="N")
    parser.add_argument("--display-name", metavar="S", help="what the invited one is called")
    parser.add_argument("--backend", metavar="B", help="what answers on the invited machine")
    parser.add_argument("--agent-prefix", metavar="P", help="how the agent's id begins")
    args = parser.parse_args()
    hints = {"backend": args.backend, "agent_prefix": args.agent_prefix}
    hints = {name: hint for name, hint in hints.items() if hint}
    for hint in hints.values():
        if not re.match(r"[a-z0-9_.]{1,20}$", hint):
            raise Failure(f"'{hint}' must be a-z, 0-9, _ and . alone, 20 at most")
    wishes = {name: getattr(args, name) for name in ("max_uses", "ttl_seconds", "display_name")}
    wishes = {name: wish for name, wish in wishes.items() if wish is not None}
    invite = as_user().post(f"/rooms/{args.room}/invites", wishes)
    address = public_address(invite["install_url"]) + (f"?{urlencode(hints)}" if hints else "")
    show({**invite, "install_url": address, "command": f"curl -sSL '{address}' | sh"})


if __name__ == "__main__":
    main(script)
