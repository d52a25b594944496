#!/bin/sh
# Checks the library's types and tests it against the real server, SC_TEST_SERVER: run.sh FOLDER, where
# FOLDER is what install.sh filled.
set -eu
folder=$(cd "${1:?usage: run.sh FOLDER}" && pwd)
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1
"$folder/bin/mypy" --strict --no-error-summary --cache-dir="$folder/mypy" src/starchild examples
exec "$folder/bin/python" -m unittest discover -s tests
