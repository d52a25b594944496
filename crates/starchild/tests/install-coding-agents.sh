#!/bin/sh
# Installs the coding agents that tests/integration/coding_agents.rs drives, into the folder given.
set -eu
folder=${1:?usage: install-coding-agents.sh FOLDER}
codex=@openai/codex@0.166.0
codex_acp=@zed-industries/codex-acp@0.16.0
mkdir -p "$folder"
if [ "$(cat "$folder/.version" 2>/dev/null)" != "$codex $codex_acp" ]; then
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" "$codex" "$codex_acp"
    echo "$codex $codex_acp" > "$folder/.version"
fi
