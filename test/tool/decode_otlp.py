"""Decodes OTLP bodies with OpenTelemetry's own Python classes.

Usage: decode_otlp.py FOLDER
The files are named NNN-traces.bin and NNN-logs.bin. Prints one JSON object: spans and logs as flat lists.
"""

import json
import pathlib
import sys

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "kvlist_value":
        return attributes(any_value.kvlist_value.values)
    if kind == "array_value":
        return [value(item) for item in any_value.array_value.values]
    return None if kind is None else getattr(any_value, kind)


def attributes(key_values):
    return {item.key: value(item.value) for item in key_values}


def span(item, resource):
    return {
        "traceId": item.trace_id.hex(),
        "spanId": item.span_id.hex(),
        "parentSpanId": item.parent_span_id.hex() or None,
        "name": item.name,
        "kind": item.kind,
        "start": str(item.start_time_unix_nano),
        "end": str(item.end_time_unix_nano),
        "attributes": attributes(item.attributes),
        "status": {"code": item.status.code, "message": item.status.message},
        "events": [{"name": event.name, "attributes": attributes(event.attributes)} for event in item.events],
        "links": [{"spanId": link.span_id.hex(), "attributes": attributes(link.attributes)} for link in item.links],
        "resource": resource,
    }


def log(item, resource):
    return {
        "traceId": item.trace_id.hex(),
        "spanId": item.span_id.hex() or None,
        "time": str(item.time_unix_nano),
        "eventName": item.event_name,
        "severityText": item.severity_text,
        "body": value(item.body),
        "attributes": attributes(item.attributes),
        "resource": resource,
    }


def main(folder):
    spans, logs = [], []
    for path in sorted(pathlib.Path(folder).glob("*.bin")):
        if path.name.endswith("-traces.bin"):
            request = ExportTraceServiceRequest.FromString(path.read_bytes())
            for group in request.resource_spans:
                resource = attributes(group.resource.attributes)
                spans += [span(item, resource) for scope in group.scope_spans for item in scope.spans]
        else:
            request = ExportLogsServiceRequest.FromString(path.read_bytes())
            for group in request.resource_logs:
                resource = attributes(group.resource.attributes)
                logs += [log(item, resource) for scope in group.scope_logs for item in scope.log_records]
    json.dump({"spans": spans, "logs": logs}, sys.stdout)


main(*sys.argv[1:])
