#!/bin/sh
# Installs the coding agents that tests/integration/coding_agents.rs drives, into the folder given.
set -eu
folder=${1:?usage: install-coding-agents.sh FOLDER}
case "$(uname -s) $(uname -m)" in
    "Linux x86_64") platform=linux-x64 ;;
    "Linux aarch64") platform=linux-arm64 ;;
    "Darwin arm64") platform=darwin-arm64 ;;
    *) platform=darwin-x64 ;;
esac
# Of OpenCode and claude the program alone: their packages bring several builds of it.
packages="@openai/codex@0.166.0 @zed-industries/codex-acp@0.16.0 @google/gemini-cli@0.61.0"
packages="$packages opencode-$platform@1.18.33 @anthropic-ai/claude-code-$platform@2.1.326"
mkdir -p "$folder"
if [ "$(cat "$folder/.version" 2>/dev/null)" != "$packages" ]; then
    # shellcheck disable=SC2086
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" $packages
    ln -sf "../opencode-$platform/bin/opencode" "$folder/node_modules/.bin/opencode"
    ln -sf "../@anthropic-ai/claude-code-$platform/claude" "$folder/node_modules/.bin/claude"
    echo "$packages" > "$folder/.version"
fi
