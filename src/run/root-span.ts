import type { SpanId } from '../record/ids.js';
import { isJsonObject, type JsonValue } from '../record/json.js';
import type { SpanEnd, SpanStart, SpanStatus } from '../record/telemetry-record.js';
import type { UnixNano } from '../record/unix-nano.js';

/** What is known of an invocation span or a process span, from its start, its end or both. */
export class RootSpan {
  /** The outer span that it names as parent, when the command joined an orchestrator's trace. */
  outerParentSpanId: SpanId | null = null;
  startTimeUnixNano: UnixNano = 0n;
  /** `null` until its end was seen. */
  endTimeUnixNano: UnixNano | null = null;
  status: SpanStatus | null = null;
  command: string | null = null;
  rawCommand: string | null = null;
  totalErrors: number | null = null;
  totalWarnings: number | null = null;

  constructor(readonly spanId: SpanId) {}

  add(record: SpanStart | SpanEnd): void {
    const { attributes } = record;
    this.outerParentSpanId = record.parentSpanId;
    this.startTimeUnixNano = record.startTimeUnixNano;
    this.command = textOf(attributes.object('eval_args')?.command) ?? this.command;
    this.rawCommand = attributes.text('raw_command') ?? this.rawCommand;
    if (record.recordType === 'SpanStart') return;
    this.endTimeUnixNano = record.endTimeUnixNano;
    this.status = record.status;
    const metrics = attributes.get('metrics');
    if (!isJsonObject(metrics)) return;
    this.totalErrors = countOf(metrics.total_errors);
    this.totalWarnings = countOf(metrics.total_warnings);
  }

  /** Takes over what the other half of the same span knows. */
  merge(other: RootSpan): void {
    this.outerParentSpanId ??= other.outerParentSpanId;
    this.command ??= other.command;
    this.rawCommand ??= other.rawCommand;
    this.endTimeUnixNano ??= other.endTimeUnixNano;
    this.status ??= other.status;
    this.totalErrors ??= other.totalErrors;
    this.totalWarnings ??= other.totalWarnings;
  }
}

function textOf(value: JsonValue | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** A 64-bit count, spelt as a string of digits by the engine, as a number elsewhere. */
function countOf(value: JsonValue | undefined): number | null {
  const count = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) ? count : null;
}
