#!/bin/sh
# Installs what others made to read what our programs say of themselves into the folder given: the A2A
# project's SDK as client and as server, in its newest version and, in the folder `older` there, in 0.3
# (tests/api/a2a, and starchild's host and backend); a validator of OpenAPI documents, for
# tests/api/system.rs and starchild's gateways; Prometheus' own parser and OpenTelemetry's own messages,
# for starchild's organism_observed.rs.
set -eu
folder=${1:?usage: install.sh FOLDER}

install() {
    if [ "$(cat "$1/.packages" 2>/dev/null)" != "$2" ]; then
        python3 -m venv --clear "$1"
        # shellcheck disable=SC2086
        "$1/bin/pip" install --quiet --disable-pip-version-check $2
        echo "$2" > "$1/.packages"
    fi
}

install "$folder" "a2a-sdk[http-server]==1.3.0 uvicorn==0.40.0 openapi-spec-validator==0.9.0 prometheus_client==0.26.0 opentelemetry-proto==1.45.2"
install "$folder/older" "a2a-sdk[http-server]==0.3.26 uvicorn==0.40.0"
