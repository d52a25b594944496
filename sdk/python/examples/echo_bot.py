"""Joins a room and repeats what it is told: `python echo_bot.py SERVER INVITE ID`."""

import asyncio
import sys

from starchild import Agent, Message, Room


async def main(server: str, invite: str, user_id: str) -> None:
    async with await Room.join(server, invite, user_id=user_id) as room:
        agent = Agent(room, cursor="echo_bot.cursor")

        @agent.on_mention
        async def answer(message: Message) -> str:
            await room.react(message["seq"], "👀")
            return f"You said: {message['content'].replace('@', '')}"

        await agent.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
