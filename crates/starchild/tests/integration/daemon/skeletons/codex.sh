#!/bin/bash
set -eu
msg=$(cat)
sender=$(echo "$msg" | jq -r .sender_user_id)
content=$(echo "$msg" | jq -r .content)
[ "$sender" = "${SCCHAT_USER_ID:-ext_my-bot}" ] && { echo "[SILENT]"; exit 0; }

# Pipe content into your CLI; capture stdout as reply.
reply=$(echo "$content" | codex exec --skip-git-repo-check)
echo "$reply"
