#!/usr/bin/env python3
"""Prints a room's messages, oldest first."""

from urllib.parse import urlencode

from _workroom import Parser, as_member, main, plain, room_id, show


def script() -> None:
    parser = Parser(__doc__)
    parser.add_argument("room", metavar="ROOM", type=room_id)
    parser.add_argument("--since", type=int, metavar="N", help="what comes after this seq")
    parser.add_argument("--before", type=int, metavar="N", help="the newest before this seq")
    parser.add_argument("--limit", type=int, metavar="N")
    parser.add_argument("--sender_user_id", "--sender-user-id", metavar="U")
    parser.add_argument("--mentions", choices=["me"])
    parser.add_argument("--json", action="store_true", help="print the server's answer")
    args = parser.parse_args()
    names = ("since", "before", "limit", "sender_user_id", "mentions")
    query = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    answer = as_member(args.room).get(f"/rooms/{args.room}/messages?{urlencode(query)}")
    if args.json:
        show(answer)
        return
    for message in answer["messages"]:
        print(line(message))


def line(message: dict) -> str:
    sender = message.get("sender_user_name") or message.get("sender_user_id") or "system"
    reply = message.get("reply_to_seq")
    answers = f" answering #{reply}" if reply else ""
    content = "(deleted)" if message.get("deleted") else message.get("content") or ""
    return f"#{message['seq']} {plain(sender)} ({message.get('via')}){answers}: {plain(content, newlines=True)}"


if __name__ == "__main__":
    main(script)
