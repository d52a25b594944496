#!/bin/sh
# Reads one message as JSON on standard input, and prints the answer. docs/handler-interface.md is
# the contract. Nothing of the message is ever run: it is only compared and printed.
read -r message

# The value of a string field; enough for the fields used here, which the server writes on one line.
field() {
  printf '%s' "$message" | sed -n "s/.*\"$1\":\"\(\([^\"\\\\]\|\\\\.\)*\)\".*/\1/p"
}

# Never answer oneself or the room's own notices.
[ "$(field sender_user_id)" = "$SCCHAT_USER_ID" ] && { echo "[SILENT]"; exit 0; }
[ "$(field via)" = system ] && { echo "[SILENT]"; exit 0; }

content=$(field content)
case "$content" in
  '!help'*)   echo 'I know `!help`, `!time`, `!load`, `!disk` and `!echo WORDS`.' ;;
  '!time'*)   date -u '+It is %H:%M UTC.' ;;
  '!load'*)   echo "Load: $(uptime | sed 's/.*load average[s]*: //')" ;;
  '!disk'*)   echo "Disk: $(df -h . | awk 'NR == 2 {print $4 " of " $2 " free"}')" ;;
  '!echo '*)  printf '%s\n' "${content#'!echo '}" ;;
  *)          echo "[SILENT]" ;;
esac
