reply=$(printf '%s\n' "$prompt" | codex exec --skip-git-repo-check --sandbox read-only \
  -c features.shell_tool=false -c features.unified_exec=false)
