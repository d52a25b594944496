#!/bin/sh
# Installs what builds the TypeScript library and its types, into the folder given.
set -eu
folder=${1:?usage: install.sh FOLDER}
packages="openapi-typescript@7.13.0 typescript@5.9.3"
mkdir -p "$folder"
if [ "$(cat "$folder/.version" 2>/dev/null)" != "$packages" ]; then
    # shellcheck disable=SC2086
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" $packages
    echo "$packages" > "$folder/.version"
fi
