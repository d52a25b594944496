"""What every script stands on: JSON over HTTP in bounds, arguments, and errors in words.

The same file lies in each skill that has scripts. Python's standard library alone.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import sys
import time
import urllib.error
import urllib.request

ANSWER_BYTES = 8 * 1024 * 1024
ANSWER_SECONDS = 60
SOCKET_SECONDS = 20
ATTEMPTS = 3


class Failure(Exception):
    """What went wrong, in words for whoever ran the script."""


class Refusal(Failure):
    """The other side said no."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(f"{code}: {message}" if code else message)
        self.status = status
        self.code = code


class Unreachable(Failure):
    """Nobody answered, or not in time."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another place."""

    def redirect_request(self, *_args):
        return None


class Server:
    """One address that speaks JSON."""

    def __init__(self, url: str, token: str = "", local: bool = False):
        if not re.match(r"https?://[^\s]+$", url):
            raise Failure(f"'{plain(url)}' is no address; it begins with http:// or https://")
        self.url = url.rstrip("/")
        self._token = header_value(token)
        handlers = [_NoRedirects()]
        if local:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str) -> dict:
        return self._json("GET", path)

    def delete(self, path: str) -> dict:
        return self._json("DELETE", path)

    def post(self, path: str, body: dict, once: str = "") -> dict:
        """With `once`, an Idempotency-Key, it is tried again where nobody answers."""
        return self._json("POST", path, body, once)

    def put(self, path: str, body: dict) -> dict:
        return self._json("PUT", path, body)

    def patch(self, path: str, body: dict) -> dict:
        return self._json("PATCH", path, body)

    def download(self, path: str) -> bytes:
        return self._call("GET", path, None, "")

    def _json(self, method: str, path: str, body: dict | None = None, once: str = "") -> dict:
        answer = _parsed(self._call(method, path, body, once))
        if answer is None:
            raise Failure(f"{self.url} answered with something other than JSON; is the address right?")
        return answer

    def _call(self, method: str, path: str, body: dict | None, once: str) -> bytes:
        attempts = ATTEMPTS if once or method == "GET" else 1
        for attempt in range(1, attempts + 1):
            try:
                return self._attempt(method, path, body, once)
            except Unreachable:
                if attempt == attempts:
                    raise
                time.sleep(attempt)
        raise AssertionError("at least one attempt")

    def _attempt(self, method: str, path: str, body: dict | None, once: str) -> bytes:
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Accept", "application/json")
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        if once:
            request.add_header("Idempotency-Key", once)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with self._open(request) as response:
                status, answer = response.getcode(), self._bounded(response)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unreachable(f"cannot reach {self.url} ({_reason(error)}); try again in a moment") from None
        if not 200 <= status < 300:
            raise self._refusal(status, answer)
        return answer

    def _open(self, request: urllib.request.Request):
        try:
            return self._opener.open(request, timeout=SOCKET_SECONDS)
        except urllib.error.HTTPError as refusal:
            # An answer as well, with a body that says why.
            return refusal

    def _bounded(self, response) -> bytes:
        end = time.monotonic() + ANSWER_SECONDS
        read, size = [], 0
        while True:
            piece = response.read1(65536)
            if not piece:
                return b"".join(read)
            read.append(piece)
            size += len(piece)
            if size > ANSWER_BYTES:
                raise Failure(f"{self.url} answered more than {ANSWER_BYTES} bytes; is the address right?")
            if time.monotonic() > end:
                raise Unreachable(f"{self.url} took longer than {ANSWER_SECONDS} seconds to answer")

    def _refusal(self, status: int, body: bytes) -> Failure:
        answer = _parsed(body) or {}
        code, message = answer.get("error"), answer.get("message")
        if isinstance(code, str) and isinstance(message, str):
            return Refusal(status, plain(code), plain(message))
        if status in (502, 503, 504):
            return Unreachable(f"{self.url} answered {status}; try again in a moment")
        return Refusal(status, "", f"{self.url} answered {status}; is the address right?")


def _parsed(body: bytes) -> dict | None:
    try:
        answer = json.loads(body.decode())
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _reason(error: BaseException) -> str:
    return plain(str(getattr(error, "reason", None) or error or type(error).__name__))[:200]


def header_value(token: str) -> str:
    """A token with a line end in it would write headers of its own."""
    token = token.strip()
    if not re.match(r"[\x21-\x7e]*$", token):
        raise Failure("the token holds characters that no token has; was it copied whole?")
    return token


def plain(text: str, newlines: bool = False) -> str:
    """Text of others without what steers a terminal."""
    return "".join(
        letter if letter.isprintable() or (newlines and letter in "\n\t") else "\ufffd" for letter in text
    )


def setting(*names: str, default: str = "") -> str:
    """The first of these environment variables that says something."""
    for name in names:
        value = os.environ.get(name, "").strip()
        if value:
            return value
    return default


def agent_host() -> Server:
    """The agent's own host on this machine, which gives out keys."""
    return Server(setting("CLAWD_BASE_URL", "STARCHILD_AGENT_HOST", default="http://127.0.0.1:8000"), local=True)


def new_key(host: Server, scope: str, ttl_seconds: int, label: str) -> tuple[str, str]:
    """A key of the host for this scope alone: its secret and its prefix."""
    request = {
        "scope": scope,
        "ttl_seconds": ttl_seconds,
        "label": label,
        "rate_limit": {"per_minute": 30},
    }
    try:
        made = host.post("/api/keys", request)
    except Unreachable as error:
        raise Failure(f"no agent host answers: {error}. Set CLAWD_BASE_URL to where yours listens") from None
    secret, key = made.get("secret"), made.get("key")
    prefix = key.get("prefix") if isinstance(key, dict) else None
    if not isinstance(secret, str) or not isinstance(prefix, str):
        raise Failure(f"{host.url}/api/keys gave no key")
    return secret, prefix


class Parser(argparse.ArgumentParser):
    """Says what is wrong with the arguments, and exits 1 as every failure here does."""

    def __init__(self, about: str):
        super().__init__(description=about, allow_abbrev=False)

    def error(self, message: str):
        self.print_usage(sys.stderr)
        raise Failure(message)


def show(answer: dict) -> None:
    """One JSON object on one line."""
    print(json.dumps(answer, ensure_ascii=False))


def run(name: str, main) -> None:
    """Runs a script to its exit code: 0, or 1 with the reason on standard error."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        main()
        sys.stdout.flush()
    except Failure as failure:
        print(f"{name}: {failure}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(1)
    except BrokenPipeError:
        # Whoever read has read enough; the interpreter must not complain when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
