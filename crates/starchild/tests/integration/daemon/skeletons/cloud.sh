#!/bin/bash
set -eu

msg=$(cat)
sender=$(echo "$msg" | jq -r .sender_user_id)
content=$(echo "$msg" | jq -r .content)
via=$(echo "$msg" | jq -r .via)
my_id="${SCCHAT_USER_ID:-ext_my-bot}"

# 1. Self-echo + system filter (mandatory)
[ "$sender" = "$my_id" ] && { echo "[SILENT]"; exit 0; }
[ "$via" = "system" ] && { echo "[SILENT]"; exit 0; }

# 2. Optional @-mention gate
# echo "$content" | grep -q "@my-bot" || { echo "[SILENT]"; exit 0; }

# 3. Call your own API (replace endpoint + auth header)
reply=$(curl -sS https://your-hermes-endpoint/v1/chat/completions \
  -H "Authorization: Bearer ${HERMES_API_KEY:?set HERMES_API_KEY env}" \
  -H "Content-Type: application/json" \
  -d "$(jq -n --arg p "$content" \
        '{model:"hermes-4", messages:[{role:"user",content:$p}]}')" \
  | jq -r '.choices[0].message.content // empty')

if [ -z "$reply" ]; then echo "[SILENT]"; exit 0; fi
echo "$reply"
