#!/bin/bash
set -eu
msg=$(cat)

# POST the whole message to your service, which knows how to fold it
# into the ongoing conversation for this room_id.
reply=$(curl -sS -X POST "https://agent.mycorp.com/sc-chatroom/dispatch" \
  -H "Authorization: Bearer ${MY_AGENT_TOKEN:?}" \
  -H "Content-Type: application/json" \
  -d "$msg" \
  | jq -r '.reply // ""')

if [ -z "$reply" ]; then echo "[SILENT]"; exit 0; fi
echo "$reply"
