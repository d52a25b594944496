"""A shop's orders as an MCP server on standard input and output. Python's standard library alone."""

import json
import sys

ORDERS = {
    "1042": {"item": "a teapot", "state": "sent on Monday", "price": 24.0},
    "1043": {"item": "two cups", "state": "waiting for stock", "price": 9.5},
}
ORDER = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
TOOLS = [
    {
        "name": "look_up",
        "description": "What an order holds and where it is.",
        "inputSchema": ORDER,
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "refund",
        "description": "Pays an order back.",
        "inputSchema": ORDER,
        "annotations": {"destructiveHint": True},
    },
]


def call(name: str, order: str) -> str:
    known = ORDERS.get(order)
    if known is None:
        return f"There is no order {order}."
    if name == "refund":
        return f"Order {order} ({known['item']}) is refunded: {known['price']:.2f} euros."
    return f"Order {order}: {known['item']}, {known['state']}, {known['price']:.2f} euros."


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "shop", "version": "1.0.0"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        text = call(params["name"], str(params.get("arguments", {}).get("order", "")))
        return {"content": [{"type": "text", "text": text}]}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
