import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../core/clock.js';
import type { Component } from '../core/component.js';
import type { LoggedRecord, LogRange, RecordLogReader } from '../log/record-log.js';
import { type DamageReport, RecordLogFiles } from '../log/record-log-files.js';
import type { TraceId } from '../record/ids.js';
import type { SharedTraceStore } from '../storage/cluster/shared-trace-store.js';
import type { TraceCopies } from './removed-copies.js';
import { TraceCopy, type TraceCopyDeps } from './trace-copy.js';

/** What logs are read with. */
export interface CopyReaderDeps {
  readonly copies: TraceCopyDeps;
  readonly traces: Pick<SharedTraceStore, 'find'>;
  /** Copies are in its `runs/`; what is there at the start is removed. */
  readonly folder: string;
  /** Logs that this process has itself. */
  readonly own: RecordLogReader & { has(traceId: TraceId): boolean };
  readonly onDamage: DamageReport;
  readonly clock: Clock;
  /** What copies may take on disk together, in bytes; default 2 GiB. One that is read stays in any case. */
  readonly maxBytes?: number;
}

/** How long a copy counts as new, in milliseconds: whoever follows a run asks again and again. */
const FRESH_MS = 200;
const DEFAULT_MAX_BYTES = 2 * 1024 ** 3;
/** Copies that are kept; the one used longest ago goes first. */
const MAX_COPIES = 200;

interface Reading {
  readonly copy: TraceCopy;
  checkedMs: number;
  readerCount: number;
}

/**
 * Reads any trace's log in any process: those that it has itself where they lie, of the others a copy of its own, made of what
 * is in the bucket. So no process depends on another one to answer, and all answer the same.
 */
export class CopyReader implements RecordLogReader, TraceCopies, Component {
  readonly name = 'copies of record logs';
  private readonly readings = new Map<TraceId, Reading>();
  private readonly files: RecordLogFiles;

  constructor(private readonly deps: CopyReaderDeps) {
    const lengthOf = (traceId: TraceId) => this.readings.get(traceId)?.copy.lengthBytes;
    this.files = new RecordLogFiles(deps.folder, deps.onDamage, lengthOf);
  }

  async start(): Promise<void> {
    const runs = join(this.deps.folder, 'runs');
    await rm(runs, { recursive: true, force: true });
    await mkdir(runs, { recursive: true });
  }

  async shutdown(): Promise<void> {
    for (const { copy } of this.readings.values()) await copy.close();
  }

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
      return (await this.refresh(traceId, reading)) ? reading.copy.lengthBytes : 0;
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
    // In turn with whoever asks for it meanwhile, and has it made anew.
    await reading.copy.remove();
    if (reading.readerCount === 0) this.readings.delete(traceId);
  }

  private readingOf(traceId: TraceId): Reading {
    const { folder, copies } = this.deps;
    const known = this.readings.get(traceId);
    const reading = known ?? {
      copy: new TraceCopy(join(folder, 'runs', traceId), traceId, copies),
      checkedMs: Number.NEGATIVE_INFINITY,
      readerCount: 0,
    };
    this.readings.delete(traceId);
    this.readings.set(traceId, reading);
    return reading;
  }

  /** @returns false where nobody knows the trace */
  private async refresh(traceId: TraceId, reading: Reading): Promise<boolean> {
    const nowMs = this.deps.clock.monotonicMs();
    if (nowMs - reading.checkedMs < FRESH_MS) return true;
    const trace = await this.deps.traces.find(traceId);
    if (trace === undefined) return false;
    await reading.copy.bringTo(trace);
    reading.checkedMs = nowMs;
    return true;
  }

  private async makeRoom(): Promise<void> {
    const { maxBytes = DEFAULT_MAX_BYTES } = this.deps;
    let bytes = 0;
    for (const { copy } of this.readings.values()) bytes += copy.lengthBytes;
    for (const [traceId, { copy, readerCount }] of this.readings) {
      if (this.readings.size <= MAX_COPIES && bytes <= maxBytes) return;
      if (readerCount > 0) continue;
      this.readings.delete(traceId);
      bytes -= copy.lengthBytes;
      await copy.remove();
    }
  }
}
