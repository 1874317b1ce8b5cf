/**
 * Attributes that the bridge itself puts on OTLP when it converts records, for what OTLP has no place for; reading them
 * gives the records back whole. The engine sends none of them.
 */
export const BRIDGE_ATTRIBUTE = {
  eventType: 'run_bridge.event_type',
  severityNumber: 'run_bridge.severity_number',
  severityText: 'run_bridge.severity_text',
  eventId: 'run_bridge.event_id',
  spanName: 'run_bridge.span_name',
  unknownFields: 'run_bridge.unknown_fields',
  /** The SpanStart's line, where it is not what `spanStartOf` makes of the end. */
  spanStart: 'run_bridge.span_start',
  /** `ended` and `started`: the records hold only that half of the span. */
  only: 'run_bridge.only',
  /** A whole record as its line, on a log record that stands for it: what a bridge is handed while spans are still under way. */
  record: 'run_bridge.record',
} as const;

/** What all of them begin with. */
export const BRIDGE_PREFIX = 'run_bridge.';
