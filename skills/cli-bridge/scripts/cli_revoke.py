#!/usr/bin/env python3
"""Ends a terminal's login: its code at the server, and its key on the agent's host."""

from urllib.parse import quote

from _bridge import Parser, as_owner, main, prefix_file
from _common import Refusal, agent_host, show


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("code", metavar="CODE", help="sc_…, as cli_list.py shows it")
    code = parser.parse_args().code
    file = prefix_file(code)
    answer = as_owner().delete(f"/cli-keys/{code}")
    show({**answer, "key_ended": end_key(file)})


def end_key(file) -> bool:
    """Whether the key on the host is gone; one that was made elsewhere is not known here."""
    try:
        prefix = file.read_text().strip()
    except OSError:
        return False
    try:
        agent_host().delete(f"/api/keys/{quote(prefix, safe='')}")
    except Refusal as refusal:
        if refusal.status != 404:
            raise
    file.unlink()
    return True


if __name__ == "__main__":
    main(script)
