"""Lets programs that others made read the API's description and use the server by it: `cargo xtask test clients [part
of a name]`. Each test has a server of its own, and two run side by side."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import textwrap
import time
import traceback
import urllib.request
from contextlib import asynccontextmanager, suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
AT_ONCE = 2
# The machine may be busy.
START_WITHIN = 60
END_WITHIN = 900

try:
    PROGRAM, FIRST_DATA, CLIENTS = (os.environ[f"SC_TEST_{name}"] for name in ("SERVER", "DATA", "CLIENTS"))
except KeyError as missing:
    sys.exit(f"run this with `cargo xtask test clients`: it sets {missing}")
BIN = Path(CLIENTS, "bin")


class Failed(Exception):
    """What a test did not find as it should be."""


def settings():
    """The environment of a server without rate limits, behind a proxy on this machine that it trusts: as the server's
    other tests have it, whose list of limits is the only one."""
    harness = (HERE.parent / "api/harness/server.rs").read_text()
    limits = re.search(r"const RATE_LIMITS: [^=]*= \[(.*?)\];", harness, re.DOTALL)
    limits = re.findall(r'"(\w+)"', limits[1]) if limits else []
    if not limits:
        raise Failed("there is no list RATE_LIMITS in tests/api/harness/server.rs")
    env = {name: value for name, value in os.environ.items() if not name.startswith("SC_CHATROOM__")}
    env |= {f"SC_CHATROOM__LIMITS__{limit.upper()}": "0" for limit in limits}
    return env | {"SC_CHATROOM__NETWORK__TRUSTED_PROXIES": '["127.0.0.1/32"]', "SC_CHATROOM__LOG__LEVEL": "info"}


@asynccontextmanager
async def started(*command, **options):
    """A program that ends with all that it has started, however this is left."""
    command = [str(part) for part in command]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, start_new_session=True, **options
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def done(*command, **options):
    """Runs a program to its end, which must be a good one; gives what it said."""
    async with started(*command, stderr=asyncio.subprocess.PIPE, **options) as process:
        try:
            output = await asyncio.wait_for(process.communicate(), END_WITHIN)
        except TimeoutError:
            raise Failed(f"{command[0]} did not end within {END_WITHIN} s") from None
        said, wrong = (part.decode(errors="replace") for part in output)
        if process.returncode != 0:
            raise Failed(f"{command[0]} ended with {process.returncode}\n{said}\n{wrong}")
        return said


class Server:
    """Where a server listens, and a folder for the test's own files."""

    def __init__(self, folder, env):
        self.folder, self.env = folder, env
        self.data = folder / "data"
        self.log = folder / "stderr.log"
        self.url = ""

    async def opens(self, process):
        line = await asyncio.wait_for(process.stdout.readline(), START_WITHIN)
        said = re.fullmatch(r"Open (http://127\.0\.0\.1:\d+)/", line.decode().rstrip())
        if not said:
            raise Failed(f"the server said {line!r} and no address")
        self.url = said[1]

    async def token(self, user, name):
        asked = ["--data", self.data, "--user", user, "--type", "container", "--name", name]
        token = (await done(PROGRAM, "token", *asked, env=self.env)).strip()
        if not re.fullmatch(r"\S+", token):
            raise Failed(f"no token: {token!r}")
        return token

    async def description(self):
        """The API's description as a file."""
        def read():
            with urllib.request.urlopen(f"{self.url}/openapi.json", timeout=START_WITHIN) as response:
                return response.read()
        document = await asyncio.to_thread(read)
        if not json.loads(document)["paths"]:
            raise Failed("the description has no operations")
        file = self.folder / "openapi.json"
        file.write_bytes(document)
        return file


@asynccontextmanager
async def server():
    """The real server with nothing in it. Its log is shown where something fails."""
    with tempfile.TemporaryDirectory(prefix="sc-clients-", dir=os.environ.get("SC_TEST_SCRATCH")) as folder:
        it = Server(Path(folder), settings())
        # With keys and tables.
        shutil.copytree(FIRST_DATA, it.data)
        command = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data", it.data]
        with it.log.open("wb") as log:
            async with started(*command, env=it.env, stderr=log) as process:
                try:
                    await it.opens(process)
                    # Keeps the pipe open and empty for as long as the server lives.
                    draining = asyncio.create_task(process.stdout.read())
                    try:
                        yield it
                    finally:
                        draining.cancel()
                except Exception as error:
                    error.add_note(f"--- the server's log ---\n{it.log.read_text(errors='replace')}")
                    raise


async def a_generated_client():
    async with server() as it:
        library = it.folder / "sc_chatroom_client"
        # The generator's formatter is beside it.
        env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
        generate = [BIN / "openapi-python-client", "generate", "--meta", "none", "--fail-on-warning"]
        generate += ["--config", HERE / "openapi-python-client.yaml", "--output-path", library]
        await done(*generate, "--path", await it.description(), env=env, cwd=it.folder)
        env = {**os.environ, "PYTHONPATH": str(it.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        alice = await it.token("u_alice", "Alice")
        said = await done(BIN / "python", HERE / "generated_client.py", it.url, alice, env=env)
        if said.strip() != "used":
            raise Failed(f"it did not say that the client was used:\n{said}")


async def requests_as_described(*methods):
    """Lets schemathesis try the operations of these methods. Each try is a process, and no process uses more than one
    core."""
    async with server() as it:
        bearer = f"Authorization: Bearer {await it.token('u_fuzz', 'Fuzz')}"
        run = [BIN / "st", "--config-file", HERE / "schemathesis.toml", "run", await it.description()]
        run += ["--url", it.url, "--header", bearer]
        run += ["--checks", "all", "--phases", "coverage,fuzzing", "--max-examples", "3"]
        run += ["--seed", "1", "--no-shrink", "--continue-on-failure", "--warnings", "off"]
        run += ["--request-timeout", "20", "--max-response-time", "20", *methods]
        # What it remembers of one run would be tried again in the next.
        env = {**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(it.folder)}
        said = await done(*run, env=env, cwd=it.folder)
        # "No test cases were generated" is an end without a fault as well.
        if not re.search(r"\b[1-9]\d* generated", said):
            raise Failed(f"it did not say that it made requests:\n{said}")


AS_IT_SAYS = "requests_made_from_the_description_are_answered_as_it_says"
# The longest first, so that none is left to run alone at the end.
TESTS = {
    f"{AS_IT_SAYS}::post": lambda: requests_as_described("--include-method", "POST"),
    f"{AS_IT_SAYS}::get": lambda: requests_as_described("--include-method", "GET"),
    f"{AS_IT_SAYS}::others": lambda: requests_as_described("--exclude-method", "GET", "--exclude-method", "POST"),
    "a_client_that_a_generator_made_works": a_generated_client,
}


async def passes(name, turn):
    async with turn:
        began = time.monotonic()
        try:
            await TESTS[name]()
        except Exception as error:
            words = [str(error), *getattr(error, "__notes__", [])]
            told = "\n".join(words if isinstance(error, Failed) else traceback.format_exception(error))
            # Indented: what a program says is no result of a test.
            print(f"FAIL  {name}", textwrap.indent(told, "    "), sep="\n", flush=True)
            return False
        print(f"ok    {name} ({(time.monotonic() - began) * 1000:.0f} ms)", flush=True)
        return True


async def main(part):
    this = asyncio.current_task()
    for number in (signal.SIGTERM, signal.SIGHUP):
        # One that is ignored stays so, as under `nohup`.
        if signal.getsignal(number) != signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, this.cancel)
    turn = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(passes(name, turn)) for name in TESTS if part in name]
    passed = sum(task.result() for task in running)
    print(f"{passed} passed, {len(running) - passed} failed")
    return passed == len(running) > 0


try:
    sys.exit(0 if asyncio.run(main(*(sys.argv[1:] or [""]))) else 1)
except (asyncio.CancelledError, KeyboardInterrupt):
    sys.exit("ended before the tests were done")
