import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Signal } from '../../src/record/record-batch.js';
import type { TelemetryRecord } from '../../src/record/telemetry-record.js';
import { ExportsBench, type OpenExports } from '../fake/exports-bench.js';
import { sampleRecords, sampleTraceId } from '../fake/sample-run.js';
import { until } from '../tool/until.js';

const RUN = sampleTraceId('build-mixed');
const RECORDS = sampleRecords('build-mixed');
const ENDED = endedIds(RECORDS);
const PASSTHROUGH =
  '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"task","startTimeUnixNano":"1","endTimeUnixNano":"2"}]}]}]}';

function endedIds(records: readonly TelemetryRecord[]): readonly string[] {
  return records.flatMap((record) => (record.recordType === 'SpanEnd' ? [`${record.traceId} ${record.spanId}`] : []));
}

/** What is compared of the records that a receiver accepted. */
function recordsOf(receiver: ExportsBench['receiver'], signal: Signal) {
  return receiver.accepted(signal).flatMap(({ resources }) =>
    resources.flatMap(({ scopes }) =>
      scopes.flatMap(({ records }) =>
        records.map((record) => ({
          spanId: record.spanId,
          eventName: 'eventName' in record ? record.eventName : undefined,
          links: ('links' in record ? record.links : []).map(({ spanId, attributes }) => ({
            ...{ spanId, attributes: attributes.map(({ value }) => value) },
          })),
          attributes: Object.fromEntries(record.attributes.map(({ key, value }) => [key, value])),
        })),
      ),
    ),
  );
}

/** The NodeProcessed span of a node. */
function processedId(records: readonly TelemetryRecord[], uniqueId: string): string | null | undefined {
  const isOf = ({ eventType, attributes }: TelemetryRecord) =>
    eventType.endsWith('NodeProcessed') && attributes.text('unique_id') === uniqueId;
  return records.find(isOf)?.spanId;
}

/** What exports of every kind do. */
export function exportsContract(kind: string, open: OpenExports): void {
  describe(kind, () => {
    let bench: ExportsBench;
    beforeEach(async () => {
      bench = await ExportsBench.open();
    });
    afterEach(() => bench.close());

    const hasEnded = () => ENDED.every((id) => bench.receiver.spanIds.includes(id));
    const isDone = async () => (await bench.state.cursors.listPending('jaeger')).length === 0;

    it('say where they send to', async () => {
      const exports = await bench.start(open);
      expect(exports.destinations).toEqual([['jaeger', bench.receiver.url]]);
    });

    it('send a run as it comes, each span once, and end it when it is finished', async () => {
      const exports = await bench.start(open);
      for (let from = 0; from < RECORDS.length; from += 50) await bench.append(RUN, RECORDS.slice(from, from + 50));
      await bench.finish(RUN);
      await until('the end of the run', isDone);
      const ids = bench.receiver.spanIds;
      expect(hasEnded()).toBe(true);
      expect(new Set(ids).size).toBe(ids.length);
      await until('rest', () => exports.statuses()[0]?.state === 'idle' && exports.statuses()[0]?.lagBytes === 0);
      expect(exports.statuses()[0]).toMatchObject({ name: 'jaeger', pendingRuns: 0, lastError: null });
    });

    it('send at their next start what a destination that was down has not got', async () => {
      bench.receiver.answer = () => ({ status: 503 });
      const first = await bench.start(open);
      await bench.append(RUN, RECORDS);
      await until('a failed attempt', () => bench.receiver.requests.length > 0);
      await until('its lag', () => Number(first.statuses()[0]?.lagBytes) > 0);
      await bench.stop(first);
      await bench.finish(RUN);
      bench.receiver.answer = () => ({});
      await bench.start(open);
      await until('the end of the run', isDone);
      expect(hasEnded()).toBe(true);
    });

    it('end a run that was over before they came, though it could not be looked up at first', async () => {
      bench.receiver.answer = () => ({ status: 503 });
      const first = await bench.start(open);
      await bench.append(RUN, RECORDS);
      await until('a failed attempt', () => bench.receiver.requests.length > 0);
      await bench.stop(first);
      await bench.finish(RUN);
      bench.receiver.answer = () => ({});
      bench.failingLookUps = 1;
      await bench.start(open);
      await until('the end of the run', isDone);
      expect(bench.failingLookUps).toBe(0);
      expect(hasEnded()).toBe(true);
    });

    it('send what they hold back when they are flushed, and say whether that was everything', async () => {
      const exports = await bench.start(open);
      await bench.append(RUN, RECORDS.slice(0, 400));
      const ended = endedIds(RECORDS.slice(0, 400));
      expect(await exports.flush(AbortSignal.timeout(10_000))).toBe(true);
      expect(ended.every((id) => bench.receiver.spanIds.includes(id))).toBe(true);
      bench.receiver.answer = () => ({ status: 503 });
      await bench.append(RUN, RECORDS.slice(400));
      expect(await exports.flush(AbortSignal.timeout(500))).toBe(false);
    });

    it('say that nothing is behind once spans that were held back have gone, though nothing more comes', async () => {
      const exports = await bench.start(open, undefined, { eventHold: '2s' });
      await until('rest', () => exports.statuses()[0]?.state === 'idle');
      const firstEnd = RECORDS.findIndex(({ recordType }) => recordType === 'SpanEnd');
      await bench.append(RUN, RECORDS.slice(0, firstEnd + 1));
      const lag = () => Number(exports.statuses()[0]?.lagBytes);
      await until('its lag', () => lag() > 0);
      await until('no lag', () => lag() === 0);
      expect(bench.receiver.spanIds).toEqual(endedIds(RECORDS.slice(0, firstEnd + 1)));
    });

    it('send what they hold back when they are shut down', async () => {
      const exports = await bench.start(open);
      await bench.append(RUN, RECORDS);
      await bench.stop(exports);
      expect(hasEnded()).toBe(true);
    });

    it('forward the telemetry of other services', async () => {
      await bench.appendPassthrough(PASSTHROUGH);
      await bench.start(open);
      await bench.appendPassthrough(PASSTHROUGH);
      await until('the span', () => bench.receiver.spanNames.length > 0);
      expect(bench.receiver.spanNames).toEqual(['task']);
    });

    it('send a test past what waits, which moves no cursor, and say what was answered', async () => {
      bench.receiver.answer = () => ({ status: 503 });
      const exports = await bench.start(open);
      await bench.append(RUN, RECORDS);
      await until('a failed attempt', () => bench.receiver.requests.length > 0);
      const refused = await exports.test('jaeger', AbortSignal.timeout(20_000));
      expect(refused?.answers).toMatchObject([
        { signal: 'traces', result: { kind: 'retryable', status: 503 } },
        { signal: 'logs', result: { kind: 'retryable', status: 503 } },
      ]);
      expect(await isDone()).toBe(false);
      bench.receiver.answer = () => ({});
      const taken = await exports.test('jaeger', AbortSignal.timeout(20_000));
      expect(taken?.answers).toMatchObject([
        { signal: 'traces', result: { kind: 'accepted', status: 200, rejectedCount: 0 } },
        { signal: 'logs', result: { kind: 'accepted', status: 200, rejectedCount: 0 } },
      ]);
      const isTest = (id: string) => id.startsWith(`${taken?.traceId} `);
      expect(bench.receiver.spanIds.filter(isTest)).toHaveLength(1);
      expect(bench.receiver.spanNames).toContain('run-bridge test');
      // Whatever waited is sent as if there had been none.
      await until('all that waited', hasEnded);
      expect(await exports.test('none', AbortSignal.timeout(20_000))).toBeUndefined();
    });

    it('send events as log records alone where a destination asks for that, each once, also over a restart', async () => {
      const destinations = `{ jaeger: { endpoint: ${bench.receiver.url}, mapping: { events: logs } } }`;
      const first = await bench.start(open, destinations);
      for (let from = 0; from < RECORDS.length; from += 50) {
        await bench.append(RUN, RECORDS.slice(from, from + 50));
        if (from === 300) {
          await until('a span', () => bench.receiver.spanIds.length > 0);
          await bench.stop(first);
          await bench.start(open, destinations);
        }
      }
      await bench.finish(RUN);
      await until('the end of the run', isDone);
      expect(Object.values(bench.receiver.spanEvents).flat()).toEqual([]);
      const logs = recordsOf(bench.receiver, 'logs');
      const records = RECORDS.filter(({ recordType }) => recordType === 'LogRecord');
      const isMade = (name: unknown) => name === 'exception' || name === 'test_warned';
      const made = logs.filter(({ eventName }) => isMade(eventName));
      expect(logs).toHaveLength(records.length + made.length);
      const failed = recordsOf(bench.receiver, 'traces').filter(
        ({ attributes }) =>
          attributes['error.type'] !== undefined || attributes['run_bridge.node.verdict'] === 'warned',
      );
      const ids = made.map(({ spanId }) => spanId);
      expect(ids.toSorted()).toEqual(failed.map(({ spanId }) => spanId).toSorted());
      expect(new Set(ids).size).toBe(ids.length);
    });

    it('say which conventions the names of resources and records follow', async () => {
      await bench.start(open);
      await bench.append(RUN, RECORDS);
      await bench.finish(RUN);
      await until('the end of the run', isDone);
      const requests = (['traces', 'logs'] as const).flatMap((signal) => bench.receiver.accepted(signal));
      const urls = requests.flatMap(({ resources }) =>
        resources.flatMap(({ schemaUrl, scopes }) => [schemaUrl, ...scopes.map((scope) => scope.schemaUrl)]),
      );
      expect(urls.length).toBeGreaterThan(3);
      expect(new Set(urls)).toEqual(new Set(['https://opentelemetry.io/schemas/1.44.0']));
    });

    it('link nodes to those that they are made of, of a run whose manifest is known', async () => {
      const origin = { stepId: 's', stepIndex: 1, runId: 7, accountId: 1, jobId: 1, environmentId: 1 };
      const node = { tags: [], owners: [], group: null, testedId: null, checksum: null };
      const manifest = new Map([['model.shop.stg_orders', { ...node, dependsOn: ['seed.shop.raw_orders'] }]]);
      await bench.start(open, undefined, {
        changes: {
          origins: { originsOf: async () => [{ ...origin, job: 'nightly', environment: null }] },
          manifests: { ofRun: async () => manifest, ofEarlier: async () => undefined },
        },
      });
      for (let from = 0; from < RECORDS.length; from += 50) await bench.append(RUN, RECORDS.slice(from, from + 50));
      await bench.finish(RUN);
      await until('the end of the run', isDone);
      const spans = recordsOf(bench.receiver, 'traces');
      const idOf = (uniqueId: string) => processedId(RECORDS, uniqueId);
      const linked = spans.filter(({ links }) => links.some(({ attributes }) => attributes.includes('upstream')));
      expect(linked.map(({ spanId }) => spanId)).toEqual([idOf('model.shop.stg_orders')]);
      expect(linked[0]?.links.map(({ spanId }) => spanId)).toEqual([idOf('seed.shop.raw_orders')]);
    });

    it('refuse a destination that cannot be used', async () => {
      const starting = bench.start(open, '{ mine: { exporter: ./nothing-here.mjs } }');
      await expect(starting).rejects.toThrow('cannot be loaded');
    });
  });
}
