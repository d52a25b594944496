#!/bin/sh
# Installs clients that others made into the folder given, with which run.py, tests/api/mcp.rs, tests/api/oauth.rs,
# tests/api/sse_readers.rs and tests/api/webhooks use the server: what reads and tries OpenAPI documents, MCP's
# SDKs and the command line of its inspector, readers of event streams, and what checks webhooks' signatures.
# Python's are in bin/, npm's in node_modules/.
set -eu
folder=${1:?usage: install.sh FOLDER}
python="openapi-python-client==0.29.1 schemathesis==4.32.5 mcp==2.3.0 httpx-sse==0.4.3 sseclient-py==1.9.0 standardwebhooks==1.1.0"
node="@modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/inspector@0.17.5 eventsource@4.1.1 eventsource-client@1.2.0"
if [ "$(cat "$folder/.packages" 2>/dev/null)" != "$python $node" ]; then
    python3 -m venv --clear "$folder"
    # shellcheck disable=SC2086
    "$folder/bin/pip" install --quiet --disable-pip-version-check $python
    # shellcheck disable=SC2086
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" $node
    echo "$python $node" > "$folder/.packages"
fi
