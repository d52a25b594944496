"""The real server, which tests may kill."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path


class Server:
    """`SC_TEST_SERVER` on a port that it keeps over restarts."""

    def __init__(self) -> None:
        self._program = os.environ["SC_TEST_SERVER"]
        self._folder = tempfile.TemporaryDirectory()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.url = f"http://{self._address}"
        self.start()

    def start(self) -> None:
        data = ["--data", self._folder.name]
        limits = ("AGENT_MESSAGES_PER_MINUTE", "AGENT_COOLDOWN_SECONDS", "TOKEN_MINTS_PER_MINUTE")
        env = {**os.environ, **{f"SC_CHATROOM__LIMITS__{limit}": "0" for limit in limits}}
        command = [self._program, "serve", "--listen", self._address, *data]
        self._process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server does not start")

    def kill9(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill9()
        self._folder.cleanup()

    def token(self, user: str, name: str) -> str:
        command = [self._program, "token", "--data", self._folder.name, "--user", user, "--name", name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def call(self, token: str, path: str, body: dict) -> dict:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)


OPENAPI = Path(__file__).parents[3] / "crates/chatroom/tests/api/openapi.json"
