"""Reads a server's agent card with the A2A project's own SDK and prints what the SDK understood.

Usage: read_card.py SERVER
"""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.compat.v0_3.types import AgentCard as OlderCard
from a2a.types.a2a_pb2 import AgentCard
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import MessageToDict, ParseDict

# Fields of A2A before 1.0, which the SDK maps or drops before it reads the rest.
OLDER = ["url", "protocolVersion", "preferredTransport", "additionalInterfaces", "authentication"]


def strictly(raw):
    """Without the fields that the card itself announces as its own, nothing may be unknown."""
    ours = [
        field
        for extension in raw["capabilities"]["extensions"]
        for field in extension["params"]["fields"]
    ]
    left = {name: value for name, value in raw.items() if name not in OLDER + ours}
    return ParseDict(left, AgentCard(), ignore_unknown_fields=False)


def refusal(card):
    """What a client that speaks A2A's own bindings says to this card."""
    try:
        ClientFactory(ClientConfig()).create(card)
    except ValueError as error:
        return str(error)
    return None


async def main(server):
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        card = await A2ACardResolver(http, server).get_agent_card()
        raw = (await http.get(f"{server}/.well-known/agent-card.json")).json()
    validate_proto_required_fields(card)
    strict = strictly(raw)
    print(json.dumps({
        "card": MessageToDict(card),
        "strictly_the_same": strict == card,
        "client": refusal(card),
        "older_client_sees": OlderCard.model_validate(raw).url,
    }))


asyncio.run(main(sys.argv[1]))
