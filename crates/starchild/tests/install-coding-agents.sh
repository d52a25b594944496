#!/bin/sh
# Installs the coding agents that tests/integration/coding_agents.rs drives, into the folder given.
set -eu
folder=${1:?usage: install-coding-agents.sh FOLDER}
packages="@openai/codex@0.166.0 @zed-industries/codex-acp@0.16.0 @google/gemini-cli@0.61.0 \
opencode-ai@1.18.33 @anthropic-ai/claude-code@2.1.326"
mkdir -p "$folder"
if [ "$(cat "$folder/.version" 2>/dev/null)" != "$packages" ]; then
    # shellcheck disable=SC2086
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" $packages
    echo "$packages" > "$folder/.version"
fi
