"""Rooms: who calls, with which token, and what several scripts do alike."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from urllib.parse import quote

from _common import Failure, Parser, Refusal, Server, agent_host, new_key, plain, run, setting, show

KEY_SECONDS = 90 * 24 * 3600
TEXT_BYTES = 16 * 1024


def main(script) -> None:
    """Runs a script as a program."""
    run("workroom", script)


def room_argument(about: str) -> str:
    """The room of a script that takes nothing else."""
    parser = Parser(about)
    parser.add_argument("room", metavar="ROOM", type=room_id)
    return parser.parse_args().room


def room_id(text: str) -> str:
    if not re.match(r"rm_[A-Za-z0-9_-]{1,64}$", text):
        raise Failure(f"'{plain(text)}' is no room; it begins with rm_")
    return text


def segment(text: str) -> str:
    """One part of a path, whatever is in it."""
    if text in ("", ".", ".."):
        raise Failure(f"'{text}' names nothing")
    return quote(text, safe="")


def server_url() -> str:
    return setting("CHATROOM_SERVER_URL", "STARCHILD_SERVER", default="http://127.0.0.1:8080")


def public_address(address: str) -> str:
    """An address of the server's as people reach it."""
    public, here = setting("CHATROOM_PUBLIC_URL").rstrip("/"), server_url().rstrip("/")
    return public + address[len(here) :] if public and address.startswith(here + "/") else address


def user_token() -> str:
    return setting("CONTAINER_JWT", "USER_JWT", "STARCHILD_USER_TOKEN")


def as_user() -> Server:
    """The server, for what needs a user token."""
    if not user_token():
        raise Failure("set CONTAINER_JWT or USER_JWT: this needs a user token")
    return Server(server_url(), user_token())


def as_member(room: str) -> Server:
    """The server, for a member: by the user token, or by what bin/workroom keeps for the room."""
    token = user_token() or _stored_token(room)
    if not token:
        raise Failure(f"no token for {room}; set CONTAINER_JWT or USER_JWT, or join it with bin/workroom")
    return Server(server_url(), token)


def _room_folder(room: str) -> Path:
    home = os.environ.get("STARCHILD_HOME") or Path.home() / ".starchild"
    return Path(home) / "workroom" / "rooms" / room


def _stored_token(room: str) -> str:
    try:
        return (_room_folder(room) / "token").read_text().strip()
    except OSError:
        return ""


def forget_room(room: str) -> None:
    """Removes what bin/workroom keeps for a room that was left."""
    for name in ("token", "user", "cursor"):
        try:
            (_room_folder(room) / name).unlink()
        except OSError:
            pass


def my_id(server: Server, room: str) -> str:
    return server.get(f"/rooms/{room}/me")["user_id"]


def find_members(members: list[dict], wanted: str) -> list[dict]:
    """Whoever has this id, with or without its ext_, or else this name."""
    wanted = wanted.lstrip("@")
    ids = (wanted, f"ext_{wanted}")
    found = [member for member in members if member["user_id"] in ids]
    named = [member for member in members if (member.get("user_name") or "").casefold() == wanted.casefold()]
    if not found and not named:
        raise Failure(f"nobody here is called '{plain(wanted)}'; members.py lists who is in the room")
    return found or named


def post_message(server: Server, room: str, content: str) -> dict:
    return server.post(f"/rooms/{room}/messages", {"content": content}, once=str(uuid.uuid4()))


# --- The key that a room calls the agent with ---------------------------------------------------


class RoomKey:
    """A new key of the agent's host for one room's thread; the older ones end when it is in use."""

    def __init__(self, room: str):
        self.host = agent_host()
        self.scope = f"chat:thread:chatroom-{room}"
        self.secret, self.prefix = new_key(self.host, self.scope, KEY_SECONDS, f"room {room}")

    def reach(self) -> dict:
        """How the room server calls the agent, for a join or an endpoint."""
        reach = {"agent_endpoint": setting("AGENT_BASE_URL", default=self.host.url), "akm_key": self.secret}
        container = setting("CONTAINER_ID")
        return dict(reach, container_id=container) if container else reach

    def give(self, call) -> dict:
        """Gives it to the room with this call; where the room refuses, the key is nobody's."""
        try:
            answer = call()
        except Failure:
            end_key(self.host, self.prefix)
            raise
        for prefix in host_keys(self.host, self.scope):
            if prefix != self.prefix:
                end_key(self.host, prefix)
        return answer


def host_keys(host: Server, scope: str) -> list[str]:
    """The prefixes of the host's keys for this scope."""
    keys = host.get("/api/keys").get("keys")
    keys = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
    return [key["prefix"] for key in keys if key.get("scope") == scope and isinstance(key.get("prefix"), str)]


def end_key(host: Server, prefix: str) -> None:
    try:
        host.delete(f"/api/keys/{segment(prefix)}")
    except Refusal as refusal:
        if refusal.status != 404:
            raise


def set_endpoint(room: str, whole: bool) -> dict:
    """Gives the room a new key, and where `whole`, the endpoint that it opens too."""
    server = as_member(room)
    me = my_id(server, room)
    key = RoomKey(room)
    reach = key.reach() if whole else {"akm_key": key.secret}
    return key.give(lambda: server.put(f"/rooms/{room}/members/{segment(me)}/endpoint", reach))


# --- The room's texts ---------------------------------------------------------------------------


def text_script(about: str, path: str) -> None:
    """Shows or edits a room's text: its rules or its data."""
    parser = Parser(about)
    parser.add_argument("room", metavar="ROOM", type=room_id)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="print it (the default)")
    what.add_argument("--edit", action="store_true", help="replace it with standard input, or in $EDITOR")
    parser.add_argument("--json", action="store_true", help="print the server's answer")
    args = parser.parse_args()
    server = as_member(args.room)
    path = f"/rooms/{args.room}/{path}"
    answer = server.get(path)
    if args.edit:
        answer = server.patch(path, {"content": _edited(answer.get("content") or "")})
    if args.edit or args.json:
        show(answer)
    else:
        print(plain(answer.get("content") or "", newlines=True))


def _edited(text: str) -> str:
    edited = _in_editor(text) if sys.stdin.isatty() else standard_input()
    if not edited.strip():
        raise Failure("the new text is empty; nothing was changed")
    return edited.rstrip("\n")


def standard_input() -> str:
    read = sys.stdin.buffer.read(TEXT_BYTES + 1)
    if len(read) > TEXT_BYTES:
        raise Failure(f"the text on standard input is longer than {TEXT_BYTES} bytes")
    try:
        return read.decode()
    except UnicodeDecodeError:
        raise Failure("the text on standard input is not UTF-8") from None


def _in_editor(text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "room.md"
        file.write_text(text, encoding="utf-8")
        command = 'exec ${VISUAL:-${EDITOR:-vi}} "$0"'
        if subprocess.run(["sh", "-c", command, str(file)], check=False).returncode != 0:
            raise Failure("the editor failed; nothing was changed")
        return file.read_text(encoding="utf-8")
