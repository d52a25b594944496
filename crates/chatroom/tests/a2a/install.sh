#!/bin/sh
# Installs what others made to read what our programs say of themselves into the folder given: the A2A
# project's SDK, with which tests/api/discovery.rs reads the agent card; a validator of OpenAPI
# documents, for tests/api/system.rs and starchild's gateways; Prometheus' own parser and
# OpenTelemetry's own messages, for starchild's organism_observed.rs.
set -eu
folder=${1:?usage: install.sh FOLDER}
packages="a2a-sdk==1.3.0 openapi-spec-validator==0.9.0 prometheus_client==0.26.0 opentelemetry-proto==1.45.2"
if [ "$(cat "$folder/.packages" 2>/dev/null)" != "$packages" ]; then
    python3 -m venv --clear "$folder"
    # shellcheck disable=SC2086
    "$folder/bin/pip" install --quiet --disable-pip-version-check $packages
    echo "$packages" > "$folder/.packages"
fi
