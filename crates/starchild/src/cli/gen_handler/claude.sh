reply=$(printf '%s\n' "$prompt" | claude -p --tools "" --strict-mcp-config)
