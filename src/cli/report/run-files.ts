import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../core/error-code.js';
import { slices } from '../../core/slices.js';
import { listTraces } from '../../log/record-log-files.js';
import type { TraceId } from '../../record/ids.js';
import { parseRun } from '../../run/parse-run.js';
import type { RunSummary } from '../../run/run-summary.js';

/** Runs whose summaries are looked at for names and earlier lengths. */
const MAX_RECENT = 500;
/** Files that are asked for their time at once. */
const AT_ONCE = 64;

/** The runs in a data folder as they lie there. */
export class RunFiles {
  /** @param dataFolder the data folder; runs are in its `runs/` */
  constructor(readonly dataFolder: string) {}

  traces(): Promise<readonly TraceId[]> {
    return listTraces(this.dataFolder);
  }

  /** The 500 runs of which records came last, newest first. */
  async recent(): Promise<readonly TraceId[]> {
    const traces = await this.traces();
    const timed: { readonly traceId: TraceId; readonly atMs: number }[] = [];
    for (const some of slices(traces, AT_ONCE)) {
      timed.push(
        ...(await Promise.all(some.map(async (traceId) => ({ traceId, atMs: await this.lastWriteMs(traceId) })))),
      );
    }
    return timed
      .sort((a, b) => b.atMs - a.atMs)
      .slice(0, MAX_RECENT)
      .map(({ traceId }) => traceId);
  }

  /** What `run.json` says; `undefined` where there is none yet, or none that can be read. */
  async summary(traceId: TraceId): Promise<RunSummary | undefined> {
    try {
      return parseRun(await readFile(join(this.dataFolder, 'runs', traceId, 'run.json'), 'utf8'));
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  private async lastWriteMs(traceId: TraceId): Promise<number> {
    try {
      return (await stat(join(this.dataFolder, 'runs', traceId, 'telemetry.jsonl'))).mtimeMs;
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return 0;
      throw error;
    }
  }
}
