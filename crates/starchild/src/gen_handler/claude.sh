reply=$(printf '%s\n' "$prompt" | claude -p)
