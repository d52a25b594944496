#!/bin/sh
# Checks that the types are the server's, builds the library and tests it against the real server,
# SC_TEST_SERVER: run.sh FOLDER, where FOLDER is what install.sh filled.
set -eu
folder=$(cd "${1:?usage: run.sh FOLDER}" && pwd)
cd "$(dirname "$0")/.."
node tests/types.mjs "$folder" --check
node "$folder/node_modules/typescript/bin/tsc" -p . --outDir "$folder/dist"
printf '{"type":"module"}\n' > "$folder/dist/package.json"
SC_TEST_LIBRARY="$folder/dist/src" exec node --test tests/sdk.test.mjs
