#!/usr/bin/env python3
"""Hands work over to a member: a message with a title, what is to be done, and the code it is about."""

import hashlib
import re
from pathlib import Path

from _common import Failure
from _workroom import Parser, as_member, find_members, main, plain, post_message, room_id, show

MESSAGE_BYTES = 4096


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--room", metavar="R", type=room_id, required=True)
    parser.add_argument("--to", metavar="M", required=True, help="a member's id or name")
    parser.add_argument("--title", metavar="T", required=True)
    parser.add_argument("--body", metavar="B", required=True)
    parser.add_argument("--attach-code", metavar="C", action="append", default=[], help="a file, or the code")
    parser.add_argument("--expect-sha", metavar="H", action="append", default=[], help="its sha256, in order")
    parser.add_argument("--json", action="store_true", help="print the server's answer")
    args = parser.parse_args()
    attachments = [Attachment(given) for given in args.attach_code]
    check(attachments, args.expect_sha)
    server = as_member(args.room)
    members = find_members(server.get(f"/rooms/{args.room}/members")["members"], args.to)
    if len(members) > 1:
        raise Failure(f"several members are called '{plain(args.to)}'; give the id")
    posted = post_message(server, args.room, message(members[0]["user_id"], args.title, args.body, attachments))
    if args.json:
        show({**posted, "attachments": [{"name": a.name, "sha256": a.sha256} for a in attachments]})
    else:
        print(f"posted #{posted['seq']} to {args.room}")


class Attachment:
    """Code that goes with the message, whole."""

    def __init__(self, given: str):
        self.name, read = "code", given.encode()
        try:
            if Path(given).is_file():
                with open(given, "rb") as file:
                    self.name, read = Path(given).name, file.read(MESSAGE_BYTES + 1)
        except (OSError, ValueError):
            # Code of many lines is no path.
            pass
        if len(read) > MESSAGE_BYTES:
            raise Failure(f"{self.name} is longer than a message may be; say where it is instead")
        try:
            self.code = read.decode()
        except UnicodeDecodeError:
            raise Failure(f"{self.name} is not UTF-8 text; say where it is instead") from None
        self.sha256 = hashlib.sha256(read).hexdigest()

    def markdown(self) -> str:
        ticks = max((len(run) for run in re.findall(r"`+", self.code)), default=0)
        fence = "`" * max(3, ticks + 1)
        name = plain(self.name).replace("`", "'")
        code = self.code if self.code.endswith("\n") else self.code + "\n"
        return f"`{name}` sha256 `{self.sha256}`\n{fence}\n{code}{fence}"


def check(attachments: list, expected: list) -> None:
    """What is sent must be what the sender means to send."""
    if len(expected) > len(attachments):
        raise Failure("each --expect-sha needs an --attach-code")
    for attachment, sha in zip(attachments, expected):
        if not re.match(r"[0-9a-f]{7,64}$", sha.lower()):
            raise Failure(f"'{plain(sha)}' is no sha256: 7 to 64 hexadecimal digits")
        if not attachment.sha256.startswith(sha.lower()):
            raise Failure(f"{attachment.name} has sha256 {attachment.sha256}, not {sha}; nothing was sent")


def message(to: str, title: str, body: str, attachments: list) -> str:
    parts = [f"@{to} **Hand-over: {' '.join(title.split())}**", body, *(a.markdown() for a in attachments)]
    text = "\n\n".join(parts)
    over = len(text.encode()) - MESSAGE_BYTES
    if over > 0:
        raise Failure(f"the message is {over} bytes too long; shorten it, or say where the code is")
    return text


if __name__ == "__main__":
    main(script)
