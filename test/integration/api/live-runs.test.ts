import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LiveRuns, liveLine } from '../../../src/api/live-runs.js';
import { RecordLogFiles } from '../../../src/log/record-log-files.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import { countVerdicts } from '../../../src/run/verdict.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import { type OwnApi, openOwnApi } from '../../fake/own-api.js';
import { sampleRecords } from '../../fake/sample-run.js';

let api: OwnApi;
let reader: RecordLogFiles;
/** What the log of the run under way has: up to its seventh node. */
let partBytes = 0;
/** 41 s after the seventh node ended. */
let nowUnixMs = 0;
beforeAll(async () => {
  // The last one is under way.
  api = await openOwnApi(['build-mixed', 'build-mixed-fusion'], true);
  reader = new RecordLogFiles(api.dataFolder, () => {});
  const [traceId] = api.traceIds;
  if (traceId === undefined) throw new Error('no run');
  const summary = readFileSync(join(api.dataFolder, 'runs', traceId, 'run.json'), 'utf8');
  const row = { traceId, firstSeenUnixMs: 1_000, lastSeenUnixMs: 2_000, logBytes: 7, parquetBytes: 7 };
  await api.server.state.runs.save([{ ...row, state: 'finished', summary }]);
  await api.measuring.measures.ofSteps(await api.measuring.catalog.stepsOf(FIRST_ACCOUNT_ID, [1001]));
  let count = 0;
  for await (const chunk of reader.read(api.traceIds[1] as TraceId, { fromOffset: 0 })) {
    for (const { record, endOffset } of chunk) {
      if (record.recordType !== 'SpanEnd' || !record.eventType.endsWith('.NodeProcessed') || ++count !== 7) continue;
      partBytes = endOffset;
      nowUnixMs = Number(record.endTimeUnixNano / 1_000_000n) + 41_000;
    }
  }
});
afterAll(() => api.close());

/** How far run 1002 has come where its log has so many bytes, asked several times: what was read before is not read again. */
async function liveAt(...lengths: readonly number[]) {
  let toOffset = 0;
  let readCount = 0;
  const { catalog, measures } = api.measuring;
  const cutReader = {
    read: async function* (traceId: TraceId, range: { readonly fromOffset: number }) {
      for await (const chunk of reader.read(traceId, { ...range, toOffset })) {
        readCount += chunk.length;
        yield chunk;
      }
    },
  };
  const live = new LiveRuns({ catalog, measures, reader: cutReader });
  const runs = (await catalog.listRuns(FIRST_ACCOUNT_ID, { orderBy: 'id', isDescending: true, limit: 3, offset: 0 }))
    .items;
  let found: Awaited<ReturnType<typeof live.of>> = new Map();
  for (toOffset of lengths) found = await live.of(runs, nowUnixMs);
  return { found, run: found.get(1002), readCount };
}

it('says how far a run has come, what runs, and what is usual by the last runs of its job', async () => {
  const { found, run } = await liveAt(partBytes);
  expect([...found.keys()]).toEqual([1002]);
  expect(run).toMatchObject({ phase: 'RUN', doneCount: 7, usualCount: 21, hasStarts: true });
  expect(run?.running.length).toBeGreaterThan(0);
  for (const { forMs, usualMs } of run?.running ?? []) {
    expect(forMs).toBeGreaterThan(40_000);
    // The recorded run took less than two seconds.
    expect(usualMs).toBeGreaterThan(0);
    expect(usualMs).toBeLessThan(2_000);
  }
  expect(run?.usualMs).toBeGreaterThan(300);
  expect(run?.leftMs).toBeGreaterThan(0);
  expect(run && liveLine(run)).toMatch(
    /^7 of \d+ nodes, .*running \w+ for \d+ s \(usually 1 s\).*, about \d+ (?:s|min) left$/,
  );
});

it('reads on from where it was, and at the end of the log has what the records say', async () => {
  const whole = await reader.lengthBytes(api.traceIds[1] as TraceId);
  const { run, readCount } = await liveAt(partBytes, partBytes, whole, whole);
  expect(readCount).toBe(sampleRecords('build-mixed-fusion').length);
  expect(run).toMatchObject({ doneCount: 21, failedCount: 3, running: [], waitingCount: 0 });
});

it('takes the phases of the last runs before the first node', async () => {
  const { run } = await liveAt(2_000);
  expect(run).toMatchObject({ doneCount: 0, totalCount: null, leftMs: 0 });
  expect(run && liveLine(run)).toMatch(/^(?:no telemetry yet|load project for .* \(usually 1 s\))$/);
});

it('does not take for usual what an earlier run took that ended before its first node', async () => {
  const { catalog, measures } = api.measuring;
  const { items } = await catalog.listRuns(FIRST_ACCOUNT_ID, {
    orderBy: 'id',
    isDescending: true,
    limit: 2,
    offset: 0,
  });
  const early = items
    .filter(({ id }) => id === 1001)
    .map((run) => ({ ...run, id: 900, finishedUnixMs: run.createdUnixMs }));
  const copies = (await catalog.stepsOf(FIRST_ACCOUNT_ID, [1001])).map((step) => ({ ...step, runId: 900 }));
  const live = new LiveRuns({
    catalog: {
      listRuns: async () => ({ items: [...early, ...items], totalCount: 3 }),
      stepsOf: async (accountId, ids) => [
        ...(await catalog.stepsOf(accountId, ids)),
        ...copies.filter(({ runId }) => ids.includes(runId)),
      ],
    },
    measures: {
      digestsOf: async (steps) => {
        const digests = await measures.digestsOf(steps);
        if (!steps.some((step) => copies.some((copy) => copy === step))) return digests;
        const none = { uniqueIds: [], tookMs: new Float64Array(), sharesMs: new Float64Array() };
        return digests?.map((one) => ({ ...one, counts: countVerdicts([]), work: { ...one.work, ...none } }));
      },
    },
    reader,
  });
  const found = await live.of(items, nowUnixMs);
  expect(found.get(1002)?.usualCount).toBe(21);
  expect(found.get(1002)?.usualMs).toBeGreaterThan(1_000);
});

it('says when the command has ended and its artifacts are on their way, and no more how long it goes on', async () => {
  const { catalog, measures } = api.measuring;
  const artifacts = { state: 'uploading', expectedCount: 1_286, missing: [], reason: null } as const;
  const live = new LiveRuns({
    catalog: {
      listRuns: (...asked) => catalog.listRuns(...asked),
      stepsOf: async (...asked) => (await catalog.stepsOf(...asked)).map((step) => ({ ...step, artifacts })),
    },
    ...{ measures, reader },
  });
  const { items } = await catalog.listRuns(FIRST_ACCOUNT_ID, {
    orderBy: 'id',
    isDescending: true,
    limit: 1,
    offset: 0,
  });
  const run = (await live.of(items, nowUnixMs)).get(1002);
  expect(run && liveLine(run)).toBe('21 of 21 nodes, 3 failed, uploading 1,286 artifacts');
});
