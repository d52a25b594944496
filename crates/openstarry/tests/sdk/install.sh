#!/bin/sh
# Installs the official SDKs, whose types tests/integration/sdk.rs holds our requests against, into
# the folder given.
set -eu
folder=${1:?usage: install.sh FOLDER}
packages="openai==3.49.0 anthropic==2.8.0 google-genai==3.1.0"
if [ "$(cat "$folder/.packages" 2>/dev/null)" != "$packages" ]; then
    python3 -m venv --clear "$folder"
    # shellcheck disable=SC2086
    "$folder/bin/pip" install --quiet --disable-pip-version-check $packages
    echo "$packages" > "$folder/.packages"
fi
