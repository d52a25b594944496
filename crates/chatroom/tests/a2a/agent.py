"""An agent on the A2A project's own SDK, 1.0, over JSON-RPC and HTTP+JSON. Prints its address.

Usage: agent.py BINDING VERSION STREAMING LOG

BINDING is JSONRPC or HTTP+JSON, VERSION is 1.0 or 0.3, STREAMING is yes or no. What it is asked and what
is cancelled, it writes to LOG. It wants a bearer, "let-me-in".
"""

import asyncio
import json
import socket
import sys

import uvicorn
from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.server.tasks.task_updater import TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse

BINDING, VERSION, STREAMING, LOG = sys.argv[1:]


def log(**what):
    with open(LOG, "a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


class Executor(AgentExecutor):
    async def cancel(self, context, event_queue):
        log(cancelled=context.task_id)
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.cancel()

    async def execute(self, context, event_queue):
        # The last line of what rooms send is the message to answer.
        text = context.get_user_input().strip().splitlines()[-1]
        log(asked=text, context=context.context_id, task=context.task_id)
        if not context.current_task:
            await event_queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                    history=[context.message],
                )
            )
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        said = updater.new_agent_message
        await updater.start_work(message=said([Part(text="looks at it")]))
        if "wait for ever" in text:
            await asyncio.sleep(3600)
        if "which one" in text:
            await updater.requires_input(message=said([Part(text="The red or the blue?")]))
            return
        if "fail" in text:
            await updater.failed(message=said([Part(text="I cannot")]))
            return
        await updater.add_artifact([Part(text="Seven")], artifact_id="a", append=False)
        await updater.add_artifact([Part(text=" of them.")], artifact_id="a", append=True, last_chunk=True)
        await updater.complete()


class NeedsBearer:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            if headers.get(b"authorization") != b"Bearer let-me-in":
                response = PlainTextResponse("no", status_code=401)
                await response(scope, receive, send)
                return
        await self.app(scope, receive, send)


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="Counter",
        description="Counts.",
        version="1",
        capabilities=AgentCapabilities(streaming=STREAMING == "yes", push_notifications=False),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="count", name="Count", description="Counts.", tags=["count"])],
        supported_interfaces=[
            AgentInterface(protocol_binding=BINDING, protocol_version=VERSION, url=f"{url}/agent")
        ],
    )
    handler = DefaultRequestHandler(
        agent_executor=Executor(), task_store=InMemoryTaskStore(), agent_card=card
    )
    routes = create_agent_card_routes(agent_card=card)
    if BINDING == "JSONRPC":
        routes += create_jsonrpc_routes(handler, rpc_url="/agent", enable_v0_3_compat=True)
    else:
        routes += create_rest_routes(handler, path_prefix="/agent")
    app = NeedsBearer(Starlette(routes=routes))
    print(url, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


main()
