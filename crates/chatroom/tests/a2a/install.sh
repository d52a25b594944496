#!/bin/sh
# Installs the A2A project's SDK, with which tests/api/discovery.rs reads the agent card, into the
# folder given.
set -eu
folder=${1:?usage: install.sh FOLDER}
package=a2a-sdk==1.3.0
if [ "$(cat "$folder/.package" 2>/dev/null)" != "$package" ]; then
    python3 -m venv --clear "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check "$package"
    echo "$package" > "$folder/.package"
fi
