"""An agent on the A2A project's own SDK of version 0.3, over JSON-RPC. Prints its address.

Usage: older_agent.py STREAMING LOG
"""

import asyncio
import json
import socket
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_task

STREAMING, LOG = sys.argv[1:]


def log(**what):
    with open(LOG, "a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


def text_part(text):
    return Part(root=TextPart(text=text))


class Executor(AgentExecutor):
    async def cancel(self, context, event_queue):
        log(cancelled=context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def execute(self, context, event_queue):
        # The last line of what rooms send is the message to answer.
        text = context.get_user_input().strip().splitlines()[-1]
        log(asked=text, context=context.context_id, task=context.task_id)
        if not context.current_task:
            await event_queue.enqueue_event(new_task(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        said = updater.new_agent_message
        await updater.start_work(message=said([text_part("looks at it")]))
        if "wait for ever" in text:
            await asyncio.sleep(3600)
        if "which one" in text:
            await updater.requires_input(message=said([text_part("The red or the blue?")]))
            return
        await updater.add_artifact([text_part("Seven")], artifact_id="a", append=False)
        await updater.add_artifact([text_part(" of them.")], artifact_id="a", append=True)
        await updater.complete()


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="Counter",
        description="Counts.",
        version="1",
        url=f"{url}/",
        capabilities=AgentCapabilities(streaming=STREAMING == "yes"),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="count", name="Count", description="Counts.", tags=["count"])],
    )
    handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore())
    app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
    print(url, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


main()
