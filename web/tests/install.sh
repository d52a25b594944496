#!/bin/sh
# Installs what the browser tests and the type check need, into the folder given.
set -eu
folder=${1:?usage: install.sh FOLDER}
packages="puppeteer-core@25.16.0 axe-core@4.14.0 typescript@7.0.2"
mkdir -p "$folder"
if [ "$(cat "$folder/.version" 2>/dev/null)" != "$packages" ]; then
    # shellcheck disable=SC2086
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" $packages
    echo "$packages" > "$folder/.version"
fi
