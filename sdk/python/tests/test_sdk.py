"""The library against the real server, which is killed in the middle."""

from __future__ import annotations

import asyncio
import json
import tempfile
import unittest
from pathlib import Path

from server import OPENAPI, Server

from starchild import Agent, ApiError, Event, Joined, Me, Message, Posted, Room, StarchildError, Unreachable
from starchild.stream import Decoder, place

ID = "curious_otter-3a9f1c20"
DEADLINE = 120


class WithServer(unittest.IsolatedAsyncioTestCase):
    """A server with a room of Alice's, and an invite to it."""

    def setUp(self) -> None:
        self.server = Server()
        self.addCleanup(self.server.close)
        token = self.server.token("u_alice", "Alice")
        room = self.server.call(token, "/rooms", {"name": "lab"})["room_id"]
        self.invite = self.server.call(token, f"/rooms/{room}/invites", {"max_uses": 5})
        self.alice = Room(self.server.url, room, token)

    async def asyncTearDown(self) -> None:
        await self.alice.close()

    async def joins(self) -> Room:
        room = await Room.join(self.server.url, self.invite["invite_code"], user_id=ID)
        self.addAsyncCleanup(room.close)
        return room

    async def test_an_agent_joins_reads_posts_and_reacts(self) -> None:
        await self.alice.post("one")
        for invite in (self.invite["short_code"], self.invite["install_url"]):
            other = f"other_{invite[-1]}_otter-3a9f1c2{len(invite) % 10}"
            async with await Room.join(self.server.url, invite, user_id=other) as room:
                self.assertEqual((await room.me())["user_id"], f"ext_{other}")
        room = await self.joins()
        posted = await room.post("two", reply_to=1, key="same")
        again = await room.post("two", reply_to=1, key="same")
        self.assertEqual(posted["seq"], again["seq"], "posted once")
        await room.react(posted["seq"], "👍")
        (two,) = await self.alice.history(since=posted["seq"] - 1)
        self.assertEqual((two["content"], two["reactions"]["👍"]["count"]), ("two", 1))
        await room.unreact(posted["seq"], "👍")
        newest = await self.alice.history(limit=1)
        self.assertEqual((newest[0]["seq"], newest[0]["reactions"]), (posted["seq"], {}))

    async def test_nothing_is_lost_or_doubled_when_the_server_is_killed(self) -> None:
        room, count = await self.joins(), 30
        start = (await room.history(limit=1))[-1]["seq"]
        seen: list[str] = []

        async def follow() -> None:
            async for event in room.stream(str(start)):
                if event.name == "message":
                    seen.append(event.data["content"])
                if len(seen) == count:
                    return

        async def post() -> None:
            for number in range(count):
                await self.alice.post(f"message {number}")

        async def kill() -> None:
            for after in (5, 12, 20):
                while len(seen) < after:
                    await asyncio.sleep(0.01)
                self.server.kill9()
                await asyncio.to_thread(self.server.start)

        await asyncio.wait_for(asyncio.gather(follow(), post(), kill()), DEADLINE)
        expected = [f"message {number}" for number in range(count)]
        self.assertEqual(seen, expected)
        kept = [message["content"] for message in await room.history(since=start, limit=200)]
        self.assertEqual(kept, expected)

    async def test_an_agent_answers_each_mention_once_over_its_restart(self) -> None:
        room = await self.joins()
        with tempfile.TemporaryDirectory() as folder:
            agent = Agent(room, cursor=Path(folder) / "cursor")
            asked: list[int] = []

            @agent.on_mention
            async def answer(message: Message) -> str:
                asked.append(message["seq"])
                return "[SILENT] no" if "quiet" in message["content"] else f"answer {len(asked)}"

            async def answers(seq: int) -> list[str]:
                running = asyncio.create_task(agent.run())
                try:
                    while True:
                        said = await self.alice.history(since=seq, limit=200)
                        found = [m["content"] for m in said if m.get("reply_to_seq") == seq]
                        if found or running.done():
                            return found
                        await asyncio.sleep(0.05)
                finally:
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)

            (Path(folder) / "cursor").write_text("0")
            await self.alice.post("nobody is asked")
            await self.alice.post(f"@{ID} be quiet")
            first = (await self.alice.post(f"@ext_{ID} hello"))["seq"]
            self.assertEqual(await asyncio.wait_for(answers(first), DEADLINE), ["answer 2"])
            # It ended before it kept its place: what is answered stays answered.
            (Path(folder) / "cursor").write_text(str(first - 1))
            second = (await self.alice.post(f"@ext_{ID} again"))["seq"]
            self.assertEqual(await asyncio.wait_for(answers(second), DEADLINE), ["answer 3"])
            self.assertEqual(asked, [first - 1, first, second])

    async def test_refusals_are_told_and_not_tried_again(self) -> None:
        stranger = Room(self.server.url, self.alice.room_id, "rubbish")
        with self.assertRaises(ApiError) as refused:
            await stranger.post("hello")
        self.assertEqual(refused.exception.status, 401)
        with self.assertRaises(ApiError):
            async for _ in stranger.stream("0"):
                pass
        await stranger.close()
        with self.assertRaises(ApiError) as large:
            await self.alice.post("x" * 5000)
        self.assertEqual(large.exception.code, "too_large")
        with self.assertRaises(StarchildError):
            await Room.join(self.server.url, "nonsense", user_id=ID)
        self.server.kill9()
        async with Room(self.server.url, self.alice.room_id, "x", patience=0.5) as room:
            with self.assertRaises(Unreachable):
                await room.me()


class WithoutServer(unittest.TestCase):
    def test_a_stream_is_read_however_it_is_cut(self) -> None:
        stream = "\ufeff: hello\r\n\nid: 4\r\nevent: x\rdata: {\"a\":\ndata: \"é\"}\n\ndata:no json\n\nid: 5\n\n"
        whole = stream.lstrip("\ufeff").encode()
        expected = [Event("x", {"a": "é"}, "4"), Event("message", "no json", None)]
        for size in range(1, len(whole)):
            decoder = Decoder()
            pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
            self.assertEqual([event for piece in pieces for event in decoder.feed(piece)], expected, size)

    def test_an_endless_event_is_refused(self) -> None:
        decoder = Decoder()
        with self.assertRaises(StarchildError):
            for _ in range(100):
                decoder.feed(b"data: " + b"x" * 100_000)

    def test_places_are_in_order(self) -> None:
        self.assertLess(place("43"), place("43.1"))
        self.assertLess(place("43.9"), place("43.10"))
        self.assertLess(place("43.10"), place("44"))

    def test_the_types_are_those_of_the_openapi_document(self) -> None:
        schemas = json.loads(OPENAPI.read_text())["components"]["schemas"]
        for ours in (Message, Posted, Joined, Me):
            theirs = schemas[ours.__name__]
            self.assertEqual(set(theirs["properties"]), set(ours.__annotations__), ours.__name__)
            self.assertEqual(set(theirs["required"]), set(ours.__required_keys__), ours.__name__)


if __name__ == "__main__":
    unittest.main()
