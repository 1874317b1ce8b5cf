import type { TimedEvent } from '@opentelemetry/sdk-trace-base';
import { describe, expect, it } from 'vitest';
import { DEFAULT_MAPPING_OPTIONS, type SwitchValue } from '../../../../src/config/mapping-options.js';
import { DEFAULT_RETRY_POLICY, RetryPolicy } from '../../../../src/core/clock.js';
import { OtelRunMapper } from '../../../../src/export/mapping/otel-run-mapper.js';
import { RunReplay } from '../../../../src/export/run-mapper.js';
import { SignalBreaker } from '../../../../src/export/signal-breaker.js';
import { type RunBatch, SignalProgress, SignalQueue } from '../../../../src/export/signal-queue.js';
import type { MappedItems } from '../../../../src/export/wire/item-window.js';
import { UNKNOWN_RESOURCE } from '../../../../src/record/attributes.js';
import type { RedactionLevel } from '../../../../src/redaction/known-names.js';
import { FakeClock } from '../../../fake/fake-clock.js';
import { itemsOf, type MappedLog } from '../../../fake/mapped-items.js';
import { RecordingLogger } from '../../../fake/recording-logger.js';
import { sampleLines, sampleTraceId } from '../../../fake/sample-run.js';
import { type MappedRun, mapRun } from './mapped-run.js';
import { asOtlp, readLog } from './read-sample.js';

const mixed = readLog('samples/build-mixed/otel.jsonl');
const MADE = ['exception', 'test_warned'];
const LEVELS: readonly RedactionLevel[] = ['literals', 'statements', 'off'];

const isMade = ({ eventName }: MappedLog) => MADE.includes(eventName);

const saidByEvent = (spanId: string, { name, time, attributes }: TimedEvent, uniqueId: unknown) => ({
  ...{ spanId, name, time },
  attributes: { ...attributes, ...(uniqueId === undefined ? {} : { unique_id: uniqueId }) },
});

const saidByLog = ({ spanContext, eventName, hrTime, attributes }: MappedLog) => ({
  ...{ spanId: spanContext?.spanId, name: eventName, time: hrTime },
  attributes,
});

/** The made events of a run's spans. */
function eventsOf({ spans }: MappedRun) {
  return spans.flatMap((span) =>
    span.events
      .filter(({ name }) => MADE.includes(name))
      .map((event) => saidByEvent(span.spanContext().spanId, event, span.attributes.unique_id)),
  );
}

describe('an event that run-bridge makes', () => {
  it('is a log record in the context of its span, too, at every level and however its run came', () => {
    for (const redaction of LEVELS) {
      for (const log of [mixed, asOtlp(mixed)]) {
        const run = mapRun(log, { redaction });
        const events = eventsOf(run);
        expect(new Set(events.map(({ name }) => name))).toEqual(new Set(MADE));
        const made = run.logs.filter(isMade);
        expect(made.map(saidByLog)).toEqual(events);
        for (const {
          severityText,
          eventName,
          severityNumber,
          body,
          attributes,
          spanContext,
          hrTimeObserved,
          hrTime,
        } of made) {
          expect([severityText, severityNumber]).toEqual(eventName === 'exception' ? ['ERROR', 17] : ['WARN', 13]);
          expect(body).toBe(attributes['exception.message'] ?? attributes.message);
          expect(spanContext?.traceId).toBe(sampleTraceId('build-mixed'));
          expect(hrTimeObserved).toEqual(hrTime);
        }
      }
    }
  });

  it('is on no span where a destination asks for logs only, as no other is; and off leaves it where it is', () => {
    const withEvents = (events: SwitchValue) =>
      mapRun(mixed, { switches: { ...DEFAULT_MAPPING_OPTIONS.switches, events } });
    const [on, off, logs] = [withEvents(true), withEvents(false), withEvents('logs')];
    expect(logs.spans.flatMap((span) => span.events)).toEqual([]);
    expect(logs.logs.map(({ resource: _resource, ...log }) => log)).toEqual(
      on.logs.map(({ resource: _resource, ...log }) => log),
    );
    const withoutEvents = ({ spans }: MappedRun) =>
      spans.map(({ name, attributes, status, links }) => ({ name, attributes, status, links }));
    expect(withoutEvents(logs)).toEqual(withoutEvents(on));
    expect(eventsOf(off)).toEqual(eventsOf(on));
    expect(off.logs.filter(isMade).map(saidByLog)).toEqual(eventsOf(on));
    const names = new Set(off.spans.flatMap((span) => span.events.map(({ name }) => name)));
    expect(names).toEqual(new Set(MADE));
  });

  it('is none where failures make no error spans', () => {
    const switches = { ...DEFAULT_MAPPING_OPTIONS.switches, verdicts: false };
    expect(mapRun(mixed, { switches }).logs.filter(isMade)).toEqual([]);
  });
});

const BYTES = Buffer.from(`${sampleLines('build-mixed').join('\n')}\n`);
const OFFSETS = mixed.map(({ offset }) => offset);
const PARTS = [0, 0.2, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 1];
/** Where some part of the run's log ends. */
const CUTS = PARTS.map((part) => OFFSETS[Math.floor(OFFSETS.length * part)] ?? BYTES.length);

/** What a replay from a cursor makes, as `anchor span`. @param isQuiet the run is quiet at each of the cuts */
function madeBy(tracesOffset: number, logsOffset: number, isQuiet: boolean): readonly string[] {
  const cursor = { destination: 'x', traceId: sampleTraceId('build-mixed'), finishedAtBytes: null };
  // So short that spans are let go as the run goes on.
  const mapper = new OtelRunMapper({ ...DEFAULT_MAPPING_OPTIONS, eventHoldMs: 20 });
  const replay = new RunReplay(mapper, { ...cursor, tracesOffset, logsOffset }, undefined);
  const given: MappedItems[] = [];
  for (const [number, to] of CUTS.entries()) {
    const lines = BYTES.subarray(CUTS[number - 1] ?? 0, to);
    given.push(replay.pushLines([{ resource: UNKNOWN_RESOURCE, offset: CUTS[number - 1] ?? 0, lines }]));
    if (isQuiet && to >= Math.max(tracesOffset, logsOffset)) given.push(replay.takePending());
  }
  given.push(replay.takePending());
  return given
    .flatMap(itemsOf)
    .flatMap((item) =>
      item.signal === 'logs' && isMade(item.log) ? [`${item.anchorOffset} ${item.log.spanContext?.spanId}`] : [],
    );
}

describe('after a restart', () => {
  const anchorOf = (made: string) => Number(made.split(' ')[0]);
  const spanOf = (made: string) => made.split(' ')[1];

  it('each is sent that was not, and no other, wherever spans and log records stand', () => {
    const all = madeBy(0, 0, false);
    expect(all.length).toBe(mapRun(mixed).logs.filter(isMade).length);
    for (const traces of CUTS) {
      for (const logs of CUTS) {
        const made = madeBy(traces, logs, false);
        expect(made).toEqual(all.filter((one) => anchorOf(one) >= logs));
      }
    }
  });

  it('none is lost where the run was quiet in between, which a replay does not know', () => {
    const all = madeBy(0, 0, true);
    for (const traces of CUTS) {
      for (const logs of CUTS) {
        const made = madeBy(traces, logs, true).map(spanOf);
        expect(made).toEqual(expect.arrayContaining(all.filter((one) => anchorOf(one) >= logs).map(spanOf)));
        expect(new Set(made).size).toBe(made.length);
      }
    }
  });

  it('those with one anchor are told apart by their spans, where some were answered', () => {
    const deps = {
      clock: new FakeClock(),
      logger: new RecordingLogger(),
      policy: new RetryPolicy(DEFAULT_RETRY_POLICY),
    };
    const queue = new SignalQueue(new SignalBreaker('logs', true, 'otlp', deps, () => {}), 1_000);
    const progress = new SignalProgress(sampleTraceId('build-mixed'), queue);
    const replay = () => {
      const mapper = new OtelRunMapper();
      mapper.pushLines({ resource: UNKNOWN_RESOURCE, offset: 0, lines: BYTES });
      return mapper.take(true).logs;
    };
    const idsOf = ({ ranges }: RunBatch) =>
      itemsOf({ traces: [], logs: ranges }).map((item) => `${item.anchorOffset} ${item.bytes.toString('base64')}`);
    const logs = replay();
    const whole = itemsOf({ traces: [], logs });
    const made = whole.filter((item) => item.signal === 'logs' && isMade(item.log));
    expect(new Set(made.slice(-3).map(({ anchorOffset }) => anchorOffset)).size).toBe(1);
    progress.enqueue(logs);
    const front = progress.take(whole.length - 2);
    const [kept, answered] = progress.split(front, whole.length - 4);
    progress.answered(answered);
    progress.requeue(kept);
    progress.open(0);
    progress.enqueue(replay());
    const again = idsOf(progress.take(1_000));
    expect(again).toEqual(
      whole
        .map((item) => `${item.anchorOffset} ${item.bytes.toString('base64')}`)
        .filter((_, at) => at < whole.length - 4 || at >= whole.length - 2),
    );
  });
});
