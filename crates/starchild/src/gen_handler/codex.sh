reply=$(printf '%s\n' "$prompt" | codex exec --skip-git-repo-check)
