import { randomBytes } from 'node:crypto';
import { type SpanContext, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { type Clock, whenAborted } from '../core/clock.js';
import type { Signal } from '../record/record-batch.js';
import type { Destination } from './destination.js';
import type { SendResult } from './transport.js';
import { ExportGroup } from './wire/export-group.js';
import type { ItemBatch } from './wire/export-request.js';
import { WindowWriter } from './wire/item-window.js';
import {
  encodeAttributes,
  encodeSpanEnd,
  encodeValue,
  LOG,
  RECORD,
  SPAN,
  type WireWriter,
} from './wire/wire-writer.js';

/** What a destination answered to a test of one signal. */
export interface TestAnswer {
  readonly signal: Signal;
  readonly result: SendResult;
  readonly durationMs: number;
}

/** What became of the test of a destination. */
export interface DestinationTest {
  /** Of the span and the log record that were sent, to be looked for there. */
  readonly traceId: string;
  /** One for each signal that the destination gets, traces first. */
  readonly answers: readonly TestAnswer[];
}

const NAME = 'run-bridge test';
const ATTRIBUTES = { 'run_bridge.test': true } as const;
const TEXT = 'A test of this destination, sent from the settings page of run-bridge. No run has happened.';
const SPAN_MS = 1;
const SEVERITY_INFO = 9;
const BLOCK_BYTES = 1_024;

/**
 * Sends a destination a span `run-bridge test`, and a log record where it gets those, each once: past the queue and the cursors
 * of its runs. Never throws for what the other side does.
 * @param version the program's
 * @param deadline when it is given up
 */
export async function testDestination(
  destination: Pick<Destination, 'send' | 'signals'>,
  { clock, version }: { readonly clock: Clock; readonly version: string },
  deadline: AbortSignal,
): Promise<DestinationTest> {
  const context = { traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex'), traceFlags: 1 };
  const answers: TestAnswer[] = [];
  for (const signal of destination.signals) {
    const startedMs = clock.monotonicMs();
    const batch = testBatch(signal, context, clock.nowUnixMs(), version);
    const sent = destination.send(batch, deadline).then(({ result }) => result);
    const result = await Promise.race([sent, whenAborted(deadline).then(() => GIVEN_UP)]);
    answers.push({ signal, result, durationMs: clock.monotonicMs() - startedMs });
  }
  return { traceId: context.traceId, answers };
}

const GIVEN_UP: SendResult = { kind: 'retryable', status: null, retryAfterMs: null, message: 'no answer in time' };

function testBatch(signal: Signal, context: SpanContext, nowUnixMs: number, version: string): ItemBatch {
  const resource = resourceFromAttributes({ 'service.name': 'run-bridge', 'service.version': version });
  const group = new ExportGroup(resource, { name: 'run-bridge', version });
  const windows = new WindowWriter(BLOCK_BYTES);
  const write = signal === 'logs' ? writeLog : writeSpan;
  write(windows.begin(), context, nowUnixMs);
  windows.add(signal, group, 0);
  return { signal, ranges: windows.take()[signal] };
}

function writeSpan(out: WireWriter, { traceId, spanId }: SpanContext, nowUnixMs: number): void {
  out.tag(RECORD);
  const start = out.open();
  out.tag(SPAN.traceId);
  out.hex(traceId);
  out.tag(SPAN.spanId);
  out.hex(spanId);
  out.tag(SPAN.name);
  out.text(NAME);
  out.tag(SPAN.kind);
  out.varint(SpanKind.INTERNAL + 1);
  out.tag(SPAN.startTime);
  writeTime(out, nowUnixMs - SPAN_MS);
  out.tag(SPAN.endTime);
  writeTime(out, nowUnixMs);
  encodeAttributes(out, SPAN.attributes, { ...ATTRIBUTES, 'run_bridge.description': TEXT });
  encodeSpanEnd(out, { code: SpanStatusCode.UNSET });
  out.close(start);
}

function writeLog(out: WireWriter, { traceId, spanId }: SpanContext, nowUnixMs: number): void {
  out.tag(RECORD);
  const start = out.open();
  out.tag(LOG.time);
  writeTime(out, nowUnixMs);
  out.tag(LOG.severityNumber);
  out.varint(SEVERITY_INFO);
  out.tag(LOG.severityText);
  out.text('INFO');
  out.tag(LOG.body);
  encodeValue(out, TEXT);
  encodeAttributes(out, LOG.attributes, ATTRIBUTES);
  out.tag(LOG.traceId);
  out.hex(traceId);
  out.tag(LOG.spanId);
  out.hex(spanId);
  out.tag(LOG.observedTime);
  writeTime(out, nowUnixMs);
  out.close(start);
}

function writeTime(out: WireWriter, unixMs: number): void {
  out.time(Math.floor(unixMs / 1_000), (unixMs % 1_000) * 1_000_000);
}
