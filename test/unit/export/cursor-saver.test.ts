import { describe, expect, it } from 'vitest';
import { DEFAULT_RETRY_POLICY, RetryPolicy } from '../../../src/core/clock.js';
import { silentLogger } from '../../../src/core/logger.js';
import { CursorSaver } from '../../../src/export/export-run.js';
import { parseTraceId } from '../../../src/record/telemetry-record.js';
import type { CursorStore, ExportCursor } from '../../../src/storage/cursor-store.js';
import { FakeClock } from '../../fake/fake-clock.js';

/** A store each of whose writes ends when the test says so. */
class SlowCursors implements Pick<CursorStore, 'save'> {
  readonly writes: { readonly cursors: readonly ExportCursor[]; end(error?: Error): void }[] = [];

  save(cursors: readonly ExportCursor[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.writes.push({ cursors, end: (error) => (error === undefined ? resolve() : reject(error)) });
    });
  }
}

function cursor(traceNumber: number, tracesOffset: number): ExportCursor {
  const traceId = parseTraceId(traceNumber.toString(16).padStart(32, '0'));
  if (traceId === undefined) throw new Error('no trace id');
  return { destination: 'jaeger', traceId, tracesOffset, logsOffset: 0, finishedAtBytes: null };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('the saver of cursors', () => {
  it('writes one after the other, each trace where it is by then', async () => {
    const store = new SlowCursors();
    const clock = new FakeClock();
    const retryPolicy = new RetryPolicy(DEFAULT_RETRY_POLICY, () => 0.5);
    const deps = { cursors: store, clock, logger: silentLogger, retryPolicy };
    const saver = new CursorSaver('jaeger', deps, new AbortController().signal);
    const ended: number[] = [];
    const all = [cursor(1, 10), cursor(2, 20), cursor(1, 30)].map((one, index) =>
      saver.save([one]).then(() => ended.push(index)),
    );
    const late = turn().then(() => saver.save([cursor(1, 40)]));
    await turn();
    await turn();
    expect(store.writes.map(({ cursors }) => cursors)).toEqual([[cursor(1, 30), cursor(2, 20)]]);
    store.writes[0]?.end();
    await Promise.all(all);
    await turn();
    expect(store.writes[1]?.cursors).toEqual([cursor(1, 40)]);
    store.writes[1]?.end(new Error('away'));
    await turn();
    clock.advance(60_000);
    await turn();
    expect(store.writes[2]?.cursors).toEqual([cursor(1, 40)]);
    store.writes[2]?.end();
    await late;
  });
});
