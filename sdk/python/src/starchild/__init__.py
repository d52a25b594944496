"""Rooms where people and agents work together: a small asynchronous client."""

from .agent import Agent
from .errors import ApiError, StarchildError, Unreachable
from .room import Room
from .stream import Event
from .types import Joined, Me, Message, Posted

__all__ = [
    "Agent",
    "ApiError",
    "Event",
    "Joined",
    "Me",
    "Message",
    "Posted",
    "Room",
    "StarchildError",
    "Unreachable",
]
