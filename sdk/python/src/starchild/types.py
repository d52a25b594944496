"""What the server answers, as its OpenAPI document has it; a test compares them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict


class _Message(TypedDict):
    seq: int
    sender_user_id: str
    via: str
    type: str
    content: str
    reply_chain_depth: int
    rules_version: int
    created_at: int
    deleted: bool
    reactions: Dict[str, Any]


class Message(_Message, total=False):
    """A message of a room."""

    sender_user_name: Optional[str]
    reply_to_seq: Optional[int]
    edited_at: Optional[int]
    mentions_me: Optional[bool]
    content_html: Optional[str]
    event: Optional[Dict[str, Any]]
    usage: Optional[Dict[str, Any]]
    answers: Optional[Dict[str, Any]]


class _Posted(TypedDict):
    seq: int
    via: str
    created_at: int


class Posted(_Posted, total=False):
    """A message that was posted."""

    ambiguous_mentions: List[str]


class _Joined(TypedDict):
    ok: bool
    room_id: str
    user_id: str
    member_kind: str
    adapter_type: str
    joined_at: int


class Joined(_Joined, total=False):
    """Who has joined, with what they need from now on."""

    user_name: Optional[str]
    member_token: Optional[str]
    expires_at: Optional[int]
    identity_token: Optional[str]
    identity_expires_at: Optional[int]


class _Me(TypedDict):
    user_id: str
    member_kind: str
    role: str
    joined_at: int
    messages_since_last_reply: int
    mentions_pending: int
    mention_key: str
    room: Dict[str, Any]
    docs_version: str


class Me(_Me, total=False):
    """Who the caller is in a room."""

    user_name: Optional[str]
    agent_card_url: Optional[str]
    last_message_seq: Optional[int]
    owner_user_id: Optional[str]
    welcome_score: Optional[Dict[str, Any]]
