import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../core/clock.js';
import type { Component } from '../core/lifecycle.js';
import type { LoggedRecord, LogRange, RecordLogReader } from '../log/record-log.js';
import { type DamageReport, RecordLogFiles } from '../log/record-log-files.js';
import type { TraceId } from '../record/telemetry-record.js';
import { type EndingTimes, RunState } from '../run/open-run.js';
import { parseRun } from '../run/parse-run.js';
import { type StepReader, TraceSteps } from '../run/trace-steps.js';
import type { RunSummary } from '../run/verdict.js';
import type { JournalStore } from '../storage/journal-store.js';
import type { RunStore } from '../storage/run-store.js';
import type { TraceCopies } from './removed-copies.js';
import { LogCopy, type LogCopyDeps } from './segments.js';

/** What runs are read with. */
export interface SharedRunReaderDeps {
  /** Runs that this process has. */
  readonly own: { has(traceId: TraceId): boolean; find(traceId: TraceId): Promise<RunSummary | undefined> };
  readonly runs: Pick<RunStore, 'find'>;
  readonly reader: RecordLogReader;
  readonly steps: Pick<StepReader, 'stepsOf'>;
  readonly times: EndingTimes;
  readonly clock: Clock;
}

/** Runs as they are known now, in any process: of one that another process has, what its log adds up to. */
export class SharedRunReader {
  constructor(private readonly deps: SharedRunReaderDeps) {}

  async find(traceId: TraceId): Promise<RunSummary | undefined> {
    const { own, runs, reader } = this.deps;
    if (own.has(traceId)) return await own.find(traceId);
    const row = await runs.find(traceId);
    const logBytes = await reader.lengthBytes(traceId);
    if (row?.state === 'finished' && row.logBytes === logBytes) return parseRun(row.summary);
    if (logBytes === 0) return row && parseRun(row.summary);
    const { clock, times, steps } = this.deps;
    const state = new RunState(times);
    const nowMs = clock.monotonicMs();
    for await (const records of reader.read(traceId, { fromOffset: 0, toOffset: logBytes })) state.add(records, nowMs);
    const known = new TraceSteps(traceId, { ...NO_CHANGES, stepsOf: (id) => steps.stepsOf(id) });
    await known.refresh([]);
    const seenMs = clock.nowUnixMs();
    return {
      traceId,
      firstSeenUnixMs: row?.firstSeenUnixMs ?? seenMs,
      lastSeenUnixMs: row?.lastSeenUnixMs ?? seenMs,
      // Whether it is over is for the process to say that has it.
      state: 'open',
      logBytes,
      invocations: state.judge(nowMs, known).invocations,
    };
  }
}

const NO_CHANGES: Pick<StepReader, 'findStep' | 'attach'> = {
  findStep: async () => undefined,
  attach: async () => false,
};

/** What logs are read with. */
export interface CopyReaderDeps {
  readonly copies: LogCopyDeps;
  readonly traces: Pick<JournalStore, 'known'>;
  /** Copies are in its `runs/`; what is there at the start is removed. */
  readonly folder: string;
  /** Logs that this process has itself. */
  readonly own: RecordLogReader & { has(traceId: TraceId): boolean };
  readonly onDamage: DamageReport;
  readonly clock: Clock;
  /** What copies may take on disk together, in bytes; default 2 GiB. One that is read stays in any case. */
  readonly maxBytes?: number;
}

/** How long a copy counts as new, in milliseconds: clients that follow a run request it repeatedly. */
const FRESH_MS = 1_000;
const DEFAULT_MAX_BYTES = 2 * 1024 ** 3;
/** Copies that are kept; the one used longest ago goes first. */
const MAX_COPIES = 200;

interface Reading {
  readonly copy: LogCopy;
  checkedMs: number;
  readerCount: number;
}

/**
 * Reads any trace's log in any process: those that it has itself where they lie, of the others a copy of its own, made of what
 * is in the bucket. So no process depends on another one to answer.
 */
export class CopyReader implements RecordLogReader, TraceCopies, Component {
  readonly name = 'copies of record logs';
  private readonly readings = new Map<TraceId, Reading>();
  private readonly files: RecordLogFiles;

  constructor(private readonly deps: CopyReaderDeps) {
    const lengthOf = (traceId: TraceId) => this.readings.get(traceId)?.copy.stored.logBytes;
    this.files = new RecordLogFiles(deps.folder, deps.onDamage, lengthOf);
  }

  async start(): Promise<void> {
    const runs = join(this.deps.folder, 'runs');
    await rm(runs, { recursive: true, force: true });
    await mkdir(runs, { recursive: true });
  }

  async shutdown(): Promise<void> {}

  async *read(traceId: TraceId, range: LogRange): AsyncIterable<readonly LoggedRecord[]> {
    if (this.deps.own.has(traceId)) {
      yield* this.deps.own.read(traceId, range);
      return;
    }
    const reading = this.readingOf(traceId);
    reading.readerCount += 1;
    try {
      if (await this.refresh(traceId, reading)) yield* this.files.read(traceId, range);
    } finally {
      reading.readerCount -= 1;
      await this.makeRoom();
    }
  }

  async lengthBytes(traceId: TraceId): Promise<number> {
    if (this.deps.own.has(traceId)) return await this.deps.own.lengthBytes(traceId);
    const reading = this.readingOf(traceId);
    reading.readerCount += 1;
    try {
      return (await this.refresh(traceId, reading)) ? reading.copy.stored.logBytes : 0;
    } finally {
      reading.readerCount -= 1;
      await this.makeRoom();
    }
  }

  traceIds(): readonly TraceId[] {
    return [...this.readings.keys()];
  }

  async forget(traceId: TraceId): Promise<void> {
    const reading = this.readings.get(traceId);
    if (reading === undefined || reading.readerCount > 0) return;
    // Queued behind a concurrent request, which creates it again.
    await reading.copy.remove();
    if (reading.readerCount === 0) this.readings.delete(traceId);
  }

  private readingOf(traceId: TraceId): Reading {
    const { folder, copies } = this.deps;
    const known = this.readings.get(traceId);
    const reading = known ?? {
      copy: new LogCopy(join(folder, 'runs', traceId), traceId, copies),
      checkedMs: Number.NEGATIVE_INFINITY,
      readerCount: 0,
    };
    this.readings.delete(traceId);
    this.readings.set(traceId, reading);
    return reading;
  }

  /** @returns false if the trace is unknown */
  private async refresh(traceId: TraceId, reading: Reading): Promise<boolean> {
    const nowMs = this.deps.clock.monotonicMs();
    if (nowMs - reading.checkedMs < FRESH_MS) return true;
    if (!(await this.deps.traces.known([traceId])).has(traceId)) return false;
    await reading.copy.refresh();
    reading.checkedMs = nowMs;
    return true;
  }

  private async makeRoom(): Promise<void> {
    const { maxBytes = DEFAULT_MAX_BYTES } = this.deps;
    let bytes = 0;
    for (const { copy } of this.readings.values()) bytes += copy.stored.logBytes;
    for (const [traceId, { copy, readerCount }] of this.readings) {
      if (this.readings.size <= MAX_COPIES && bytes <= maxBytes) return;
      if (readerCount > 0) continue;
      this.readings.delete(traceId);
      bytes -= copy.stored.logBytes;
      await copy.remove();
    }
  }
}
