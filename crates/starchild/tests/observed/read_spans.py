"""Reads OTLP requests, one for each file given, and prints their spans as JSON."""

import json
import sys

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


spans = []
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        request = ExportTraceServiceRequest.FromString(file.read())
    for resource_spans in request.resource_spans:
        resource = {a.key: value(a.value) for a in resource_spans.resource.attributes}
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                spans.append({
                    "service": resource.get("service.name"),
                    "name": span.name,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "seconds": (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                    "is_error": span.status.code == 2,
                    "attributes": {a.key: value(a.value) for a in span.attributes},
                })
print(json.dumps(spans))
