#!/usr/bin/env python3
"""Replaces this skill with the server's, where that is another version."""

import hashlib
import io
import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path

from _common import Failure, Server, setting, show
from _workroom import Parser, main, server_url

NAME = "workroom"
MOST_FILES = 500
MOST_BYTES = 16 * 1024 * 1024


def script() -> None:
    parser = Parser(__doc__)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true", help="say what there is, and change nothing")
    how.add_argument("--force", action="store_true", help="replace it even by the same version")
    args = parser.parse_args()
    server, folder = Server(server_url()), skill_folder()
    installed, offered = version(folder), entry(server)
    newer = installed != offered["version"]
    versions = {"name": NAME, "installed": installed, "available": offered["version"], "update": newer}
    if args.check or not (newer or args.force):
        show({**versions, "updated": False})
        return
    archive = server.download(f"/skills/{NAME}.tar.gz")
    if hashlib.sha256(archive).hexdigest() != offered["sha256"]:
        raise Failure("the archive is not the one that the index names; nothing was changed")
    try:
        swap(folder, archive, offered["version"])
    except OSError as error:
        raise Failure(f"cannot replace {folder}: {error.strerror}") from None
    show({**versions, "updated": True})


def skill_folder() -> Path:
    root = setting("SKILLS_ROOT")
    return Path(root) / NAME if root else Path(__file__).resolve().parent.parent


def version(folder: Path) -> str:
    """What the front matter of a SKILL.md says; nothing where there is none."""
    try:
        front = (folder / "SKILL.md").read_text(encoding="utf-8").split("\n---", 1)[0]
    except (OSError, ValueError):
        return ""
    found = re.search(r"^version:\s*\"?([^\s\"]+)", front, re.MULTILINE)
    return found.group(1) if found else ""


def entry(server: Server) -> dict:
    skills = server.get("/skills/index.json").get("skills")
    for skill in skills if isinstance(skills, list) else []:
        if isinstance(skill, dict) and skill.get("name") == NAME:
            if isinstance(skill.get("version"), str) and isinstance(skill.get("sha256"), str):
                return skill
    raise Failure(f"{server.url} offers no {NAME}")


def swap(folder: Path, archive: bytes, expected: str) -> None:
    """Unpacks beside the folder and takes its place; where that fails, the old one is back."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{NAME}-") as beside:
        unpack(archive, Path(beside))
        if version(Path(beside) / NAME) != expected:
            raise Failure("the archive holds another version than the index says; nothing was changed")
        old = Path(beside) / "old"
        if folder.exists():
            os.rename(folder, old)
        try:
            os.rename(Path(beside) / NAME, folder)
        except OSError:
            if old.exists():
                os.rename(old, folder)
            raise


def unpack(archive: bytes, into: Path) -> None:
    """Files and folders below the skill's own name, and nothing else."""
    files = size = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            for member in tar:
                parts = member.name.rstrip("/").split("/")
                if parts[0] != NAME or any(part in ("", ".", "..") for part in parts):
                    raise Failure(f"the archive wants to write to '{member.name}'; nothing was changed")
                files, size = files + 1, size + member.size
                if files > MOST_FILES or size > MOST_BYTES:
                    raise Failure("the archive is larger than any skill; nothing was changed")
                target = into.joinpath(*parts)
                if member.isdir():
                    target.mkdir(parents=True, exist_ok=True)
                elif member.isreg():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with open(target, "xb") as file:
                        shutil.copyfileobj(tar.extractfile(member), file)
                    target.chmod(0o755 if member.mode & 0o100 else 0o644)
                else:
                    raise Failure(f"'{member.name}' in the archive is no file; nothing was changed")
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise Failure(f"the archive cannot be read ({error}); nothing was changed") from None


if __name__ == "__main__":
    main(script)
