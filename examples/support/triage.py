"""Decides who answers a question, by its words."""

import json
import re
import sys

ABOUT = {
    "Orders": r"\b(orders?|parcel|deliver\w*|refund\w*|return)\b",
    "Billing": r"\b(invoices?|bills?|prices?|costs?|pay\w*)\b",
}

asked = json.load(sys.stdin)["Question"]
if asked["sender_name"] in ABOUT:
    # A specialist has answered what was passed on: there is nothing to add.
    sys.exit()
question = re.sub(r"@\S*triage\S*\s*", "", asked["text"], flags=re.IGNORECASE).strip()
whose = [name for name, words in ABOUT.items() if re.search(words, question, re.IGNORECASE)]
answer = f"@{whose[0]} {question}" if whose else "Is it about an order or about a bill? Ask me again with that word."
print(json.dumps({"Answer": {"text": answer}}))
