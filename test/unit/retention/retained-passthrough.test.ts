import { mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PassthroughSegments } from '../../../src/log/passthrough-segments.js';
import { RetainedPassthrough } from '../../../src/retention/retained-kinds.js';
import { type SweepResult, sweepKind } from '../../../src/retention/sweep.js';
import type { State } from '../../../src/storage/state.js';
import { openFreshState } from '../../fake/fresh-state.js';

const DAY_MS = 86_400_000;
const BATCH = { signal: 'traces', body: '{"resourceSpans":[]}', recordCount: 1 } as const;
const [FIRST, SECOND] = ['00000001.otlp.jsonl', '00000002.otlp.jsonl'];

let folder: string;
let state: State;
let segments: PassthroughSegments;
let nowUnixMs: number;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'run-bridge-foreign-'));
  state = await openFreshState(join(folder, 'state.db'));
  segments = new PassthroughSegments(join(folder, 'foreign'), { isSynced: false, listeners: [] });
  await segments.start();
  await segments.append([BATCH]);
  nowUnixMs = Date.now();
});
afterEach(async () => {
  await segments.close();
  await state.close();
  await rm(folder, { recursive: true, force: true });
});

const names = async () => (await readdir(join(folder, 'foreign'))).sort();

function sweep(
  limits: { maxAgeMs?: number; maxBytes?: number },
  destinations: readonly string[] = [],
  maxBacklogMs: number | null = null,
): Promise<SweepResult> {
  const kind = new RetainedPassthrough(
    { maxAgeMs: limits.maxAgeMs ?? null, maxBytes: limits.maxBytes ?? null },
    { segments, cursors: state.cursors, destinations, maxBacklogMs, nowUnixMs: () => nowUnixMs },
  );
  return sweepKind(kind, { nowUnixMs, isDry: false, signal: new AbortController().signal });
}

describe('telemetry of other services', () => {
  it('goes when it is old, but for the file that is written to', async () => {
    await sweep({ maxAgeMs: 3 * DAY_MS });
    expect(await names()).toEqual([FIRST]);
    nowUnixMs += 2 * DAY_MS;
    expect(await sweep({ maxAgeMs: 3 * DAY_MS })).toMatchObject({ count: 0 });
    expect(await names()).toEqual([FIRST, SECOND]);
    nowUnixMs += 2 * DAY_MS;
    expect(await sweep({ maxAgeMs: 3 * DAY_MS })).toEqual({
      ...{ kind: 'foreign', count: 1, fileCount: 1, sizeBytes: BATCH.body.length + 1, excessBytes: 0 },
    });
    expect(await names()).toEqual([SECOND]);
    // An empty one is not ended, whatever its age.
    nowUnixMs += 9 * DAY_MS;
    await sweep({ maxAgeMs: 3 * DAY_MS });
    expect(await names()).toEqual([SECOND]);
    await segments.append([BATCH]);
    const read = [];
    for await (const { next } of segments.read()) read.push(next);
    expect(read).toEqual([{ segment: SECOND, offset: BATCH.body.length + 1 }]);
  });

  it('goes oldest first where it is too much', async () => {
    for (const days of [2, 4]) {
      nowUnixMs += days * DAY_MS;
      await segments.turn(nowUnixMs);
      await segments.append([BATCH]);
    }
    const atUnixS = Date.now() / 1_000;
    await utimes(join(folder, 'foreign', FIRST), atUnixS - 7_200, atUnixS - 7_200);
    await utimes(join(folder, 'foreign', SECOND), atUnixS - 3_600, atUnixS - 3_600);
    expect(await sweep({ maxBytes: BATCH.body.length + 1 })).toMatchObject({ count: 1, excessBytes: 0 });
    expect((await names())[0]).toBe(SECOND);
  });

  it('stays while a destination has not got it, as long as that is waited for', async () => {
    await state.cursors.register('own', 1);
    nowUnixMs += 2 * DAY_MS;
    expect(await sweep({ maxAgeMs: 1 }, ['own'])).toMatchObject({ count: 0 });
    await state.cursors.savePassthrough('own', { segment: FIRST, offset: BATCH.body.length });
    expect(await sweep({ maxAgeMs: 1 }, ['own'], 3 * DAY_MS)).toMatchObject({ count: 0 });
    await state.cursors.savePassthrough('own', { segment: FIRST, offset: BATCH.body.length + 1 });
    expect(await sweep({ maxAgeMs: 1 }, ['own'], 3 * DAY_MS)).toMatchObject({ count: 1 });
  });

  it('goes when what a destination has not taken is given up', async () => {
    await state.cursors.register('own', 1);
    nowUnixMs += 2 * DAY_MS;
    expect(await sweep({ maxAgeMs: 1 }, ['own'], DAY_MS)).toMatchObject({ count: 1 });
  });
});
