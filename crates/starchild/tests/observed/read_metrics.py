"""Reads metrics on standard input, as both of Prometheus' formats, and prints the samples as JSON."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

text = sys.stdin.read()
assert list(prometheus(text))
print(json.dumps([
    {"name": sample.name, "labels": sample.labels, "value": sample.value, "type": family.type}
    for family in open_metrics(text)
    for sample in family.samples
]))
