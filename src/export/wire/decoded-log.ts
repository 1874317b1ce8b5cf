import { type Attributes, type HrTime, type SpanContext, TraceFlags } from '@opentelemetry/api';
import { addAttribute, anyValueOf, fieldsOf, timeOf } from './wire-reader.js';

/** A log record that its bytes were read into. */
export interface DecodedLog {
  /** In lower-case hex; empty for none. */
  readonly traceId: string;
  readonly hrTime: HrTime;
  readonly hrTimeObserved: HrTime;
  readonly spanContext: SpanContext | undefined;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body: string | undefined;
  readonly eventName: string;
  readonly attributes: Attributes;
}

/** Reads a LogRecord message that the mapping wrote. */
export function decodeLog(message: Buffer): DecodedLog {
  let hrTime: HrTime = [0, 0];
  let hrTimeObserved: HrTime = [0, 0];
  let severityNumber = 0;
  let severityText = '';
  let body: string | undefined;
  let eventName = '';
  let traceId = '';
  let spanId = '';
  const attributes: Attributes = {};
  for (const { number, value, content } of fieldsOf(message)) {
    if (number === 1) hrTime = timeOf(value);
    else if (number === 2) severityNumber = Number(BigInt.asIntN(64, value));
    else if (number === 3) severityText = content.toString('utf8');
    else if (number === 5) body = String(anyValueOf(content));
    else if (number === 6) addAttribute(attributes, content);
    else if (number === 9) traceId = content.toString('hex');
    else if (number === 10) spanId = content.toString('hex');
    else if (number === 11) hrTimeObserved = timeOf(value);
    else if (number === 12) eventName = content.toString('utf8');
  }
  const spanContext = spanId === '' ? undefined : { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
  return { traceId, hrTime, hrTimeObserved, spanContext, severityNumber, severityText, body, eventName, attributes };
}
