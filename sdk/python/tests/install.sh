#!/bin/sh
# Installs what the Python library and its tests need, into the folder given.
set -eu
folder=${1:?usage: install.sh FOLDER}
packages="httpx==0.28.1 mypy==1.19.0"
if [ "$(cat "$folder/.packages" 2>/dev/null)" != "$packages" ]; then
    python3 -m venv --clear "$folder"
    # shellcheck disable=SC2086
    "$folder/bin/pip" install --quiet --disable-pip-version-check $packages
    echo "$packages" > "$folder/.packages"
fi
