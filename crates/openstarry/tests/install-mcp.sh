#!/bin/sh
# Installs the MCP server that tests/integration/mcp.rs talks to, into the folder given.
set -eu
folder=${1:?usage: install-mcp.sh FOLDER}
package=@modelcontextprotocol/server-everything
version=2026.8.31
mkdir -p "$folder"
if [ "$(cat "$folder/.version" 2>/dev/null)" != "$version" ]; then
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" "$package@$version"
    echo "$version" > "$folder/.version"
fi
