#!/usr/bin/env python3
"""Says who is in a room, or who a member is, and what was said last."""

from _workroom import Parser, as_member, find_members, main, plain, room_id, show


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("room", metavar="ROOM", type=room_id)
    parser.add_argument("member", metavar="MEMBER", nargs="?", help="an id, or a name as the room shows it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--recent", type=int, metavar="N", default=20, help="how many messages to look at")
    args = parser.parse_args()
    state = as_member(args.room).get(f"/rooms/{args.room}/state?recent={args.recent}")
    if args.member:
        state = about(state, args.member)
    if args.json:
        show(state)
        return
    for member in state["members"]:
        print(member_line(member))
    for message in state["recent_messages"]:
        sender = message.get("sender_user_name") or message.get("sender_user_id") or "system"
        print(f"#{message['seq']} {plain(sender)}: {plain(' '.join((message.get('content') or '').split()))[:200]}")


def about(state: dict, wanted: str) -> dict:
    """What of a room's state is about this member."""
    found = find_members(state["members"], wanted)
    theirs = {member["user_id"] for member in found}
    said = [m for m in state["recent_messages"] if m.get("sender_user_id") in theirs]
    return {**state, "members": found, "recent_messages": said}


def member_line(member: dict) -> str:
    marks = [member.get("role"), member.get("role_class"), "online" if member.get("online") else None]
    marks = ", ".join(mark for mark in marks if mark)
    return f"{plain(member.get('user_name') or member['user_id'])} ({plain(member['user_id'])}): {marks}"


if __name__ == "__main__":
    main(script)
