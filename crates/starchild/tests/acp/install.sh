#!/bin/sh
# Installs the official client that tests/integration/agent/acp.rs uses, into the folder given.
set -eu
folder=${1:?usage: install.sh FOLDER}
packages="@agentclientprotocol/sdk@2.4.0 zod@4.6.7"
mkdir -p "$folder"
if [ "$(cat "$folder/.packages" 2>/dev/null)" != "$packages" ]; then
    # shellcheck disable=SC2086
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" $packages
    echo "$packages" > "$folder/.packages"
fi
