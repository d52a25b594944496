"""The room server for the owner of this agent, and the list of keys that logins stand on."""

from __future__ import annotations

import os
import re
from pathlib import Path

from _common import Failure, Parser, Server, run, setting

SCOPE = "chat:bridge:cli"


def main(script) -> None:
    """Runs a script as a program."""
    run("cli-bridge", script)


def as_owner() -> Server:
    token = setting("CONTAINER_JWT", "USER_JWT", "STARCHILD_USER_TOKEN")
    if not token:
        raise Failure("set CONTAINER_JWT or USER_JWT: this needs your owner's user token")
    return Server(setting("CHATROOM_SERVER_URL", "STARCHILD_SERVER", default="http://127.0.0.1:8080"), token)


def prefix_file(code: str) -> Path:
    """Where the prefix of a login's key is kept, as bin/cli-bridge does."""
    if not re.match(r"sc_[A-Za-z0-9_-]{1,64}$", code):
        raise Failure("a login is sc_ and a code, as cli_list.py shows it")
    home = os.environ.get("STARCHILD_HOME") or Path.home() / ".starchild"
    return Path(home) / "cli-bridge" / code
