#!/usr/bin/env python3
"""Logs a terminal in to this agent; prints the bundle for `starchild login`. It is a credential."""

import base64
import json
import os
import socket

from _bridge import SCOPE, Parser, as_owner, main, prefix_file
from _common import Failure, agent_host, new_key, setting

DAY = 24 * 3600


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--label", metavar="S", default="terminal", help="what the login is called")
    parser.add_argument("--days", type=int, metavar="N", default=30)
    parser.add_argument("--ttl-seconds", type=int, metavar="N", help="instead of --days")
    args = parser.parse_args()
    ttl = args.ttl_seconds if args.ttl_seconds is not None else args.days * DAY
    if not 0 < ttl < 1000 * DAY:
        raise Failure("a login lasts longer than nothing and 999 days at most")
    server, host = as_owner(), agent_host()
    secret, prefix = new_key(host, SCOPE, ttl, args.label)
    try:
        made = server.post("/cli-keys", request(host, secret, args.label, ttl))
        keep(prefix_file(made["code"]), prefix)
    except (Failure, OSError) as error:
        host.delete(f"/api/keys/{prefix}")
        raise error if isinstance(error, Failure) else Failure(f"cannot keep the login: {error}") from None
    print(bundle(server_address(server.url), made, args.label))


def request(host, secret: str, label: str, ttl: int) -> dict:
    return {
        "akm_key": secret,
        "label": label,
        "ttl_seconds": ttl,
        "container_id": setting("CONTAINER_ID", "STARCHILD_CONTAINER_ID", default=socket.gethostname()),
        "agent_endpoint": setting("AGENT_BASE_URL", "STARCHILD_AGENT_ENDPOINT", default=host.url),
    }


def server_address(url: str) -> str:
    """Where a laptop reaches the server, which may not be where the agent does."""
    return setting("CHATROOM_PUBLIC_URL", default=url).rstrip("/")


def keep(file, prefix: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as kept:
        kept.write(prefix + "\n")


def bundle(server: str, made: dict, label: str) -> str:
    fields = {"d": server, "c": "", "k": made["code"], "s": SCOPE, "exp": made["expires_at"], "l": label}
    packed = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    return "starchild_" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


if __name__ == "__main__":
    main(script)
