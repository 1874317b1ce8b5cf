import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Copies } from '../../src/cluster/bucket/copies.js';
import { SharedFiles } from '../../src/cluster/bucket/shared-files.js';
import { Builder, type TraceFollower } from '../../src/cluster/builder.js';
import type { PartitionOffset } from '../../src/cluster/kafka/kafka-source.js';
import { PassthroughSegments } from '../../src/log/passthrough-segments.js';
import type { RecordLogReader } from '../../src/log/record-log.js';
import { RecordLogFiles } from '../../src/log/record-log-files.js';
import type { Delivery } from '../../src/record/record-batch.js';
import type { TraceId } from '../../src/record/telemetry-record.js';
import type { State } from '../../src/storage/state.js';
import { FakeClock } from './fake-clock.js';
import { openFreshState } from './fresh-state.js';
import { MemoryObjectStore } from './memory-object-store.js';
import { RecordingLogger } from './recording-logger.js';

/** Turns in which a bench looks whether something is so: less time by its clock, in all, than makes a trace count as silent. */
const FAST_TURNS = 3_000;
const SLOW_TURNS = 3_000;
const SLOW_TURN_MS = 5;
const TOPIC = 'otlp_spans';

/** What a process that shares a state and a bucket tells whoever follows its logs. */
export class FollowedTraces implements TraceFollower {
  readonly lengths = new Map<TraceId, number>();
  readonly stored = new Map<TraceId, number>();
  readonly adopted: TraceId[] = [];
  readonly dropped: TraceId[] = [];
  readonly stepsChanged: TraceId[] = [];
  /** Whether everything about every trace counts as told. */
  areSettled = false;

  onAppended({ traceId, lengthBytes }: { readonly traceId: TraceId; readonly lengthBytes: number }): void {
    this.lengths.set(traceId, lengthBytes);
  }

  onStored(traceId: TraceId, lengthBytes: number): void {
    this.stored.set(traceId, lengthBytes);
  }

  async adopt(traceId: TraceId, lengthBytes: number): Promise<void> {
    this.adopted.push(traceId);
    this.lengths.set(traceId, lengthBytes);
  }

  onStepsChanged(traceId: TraceId): void {
    this.stepsChanged.push(traceId);
  }

  async isSettled(): Promise<boolean> {
    return this.areSettled;
  }

  async drop(traceId: TraceId): Promise<void> {
    this.dropped.push(traceId);
    this.lengths.delete(traceId);
  }
}

/** One of the builders of a bench: what reads the journal, and what follows logs, are left out. */
export class BenchProcess {
  readonly logger = new RecordingLogger();
  readonly followed = new FollowedTraces();
  readonly processId = randomUUID();
  readonly builder: Builder;
  readonly files: SharedFiles;
  readonly copies: Copies;
  /** Offsets that were committed, in their order. */
  readonly committed: number[] = [];
  /** What every commit fails with, while it is set. */
  commitFailure: Error | undefined;
  private offset = 0;
  private isDead = false;

  constructor(
    readonly folder: string,
    readonly state: State,
    readonly bucket: MemoryObjectStore,
    readonly clock: FakeClock,
    maxUnstoredBytes = 2 ** 30,
  ) {
    const { followed: follower, logger, processId } = this;
    const { journal } = state;
    this.files = new SharedFiles({ journal, bucket, processId, folder, newId: () => randomUUID() });
    const passthrough = new PassthroughSegments(join(folder, 'foreign'), { isSynced: false, listeners: [] });
    const refuse = () => Promise.reject(new Error('nothing is written to the journal here'));
    const writer = { consume: refuse, consumeBody: refuse };
    this.builder = new Builder({
      ...{ bucket, journal, files: this.files, passthrough, follower, writer, processId, destinations: () => [] },
      ...{ folder, silenceMs: 600_000, maxMemoryBytes: 2 ** 28, maxUnstoredBytes, clock, logger },
    });
    const lengthOf = (traceId: TraceId) => this.builder.lengthBytes(traceId);
    const localReader = new RecordLogFiles(folder, () => {}, lengthOf);
    this.copies = new Copies({
      ...{
        bucket,
        journal,
        folder: join(folder, 'copies'),
        localReader,
        isLocal: (traceId) => lengthOf(traceId) !== undefined,
      },
      ...{ onDamage: () => {}, clock, logger },
    });
  }

  get reader(): RecordLogReader {
    return this.copies;
  }

  async start(): Promise<void> {
    await this.copies.start();
    await this.builder.start();
  }

  /** As after `kill -9`: what is on its disk is gone, too. */
  async die(): Promise<void> {
    if (this.isDead) return;
    this.isDead = true;
    await this.builder.shutdown(new AbortController().signal);
    await this.copies.shutdown();
  }

  /** The group has given it all partitions of a journal, or none. */
  async begin(generation: number, hasAll = true): Promise<void> {
    await this.beginWith(generation, hasAll ? [0, 1] : [], 2);
  }

  /** The group has given it partitions of so many. */
  async beginWith(generation: number, partitions: readonly number[], count: number): Promise<void> {
    const assignment = { generation, partitions: new Set(partitions), partitionCounts: new Map([[TOPIC, count]]) };
    await this.builder.begin(assignment, new AbortController().signal);
  }

  /** Reads a message that holds a delivery. @returns its offset */
  async read(delivery: Delivery, signal = new AbortController().signal): Promise<number> {
    await this.builder.consume(delivery);
    this.offset += 1;
    const behind = { topic: TOPIC, partition: 0, offset: BigInt(this.offset), leaderEpoch: -1 };
    await this.builder.taken(
      [behind],
      async (offsets: readonly PartitionOffset[]) => {
        if (this.commitFailure !== undefined) throw this.commitFailure;
        for (const { offset } of offsets) this.committed.push(Number(offset));
      },
      signal,
    );
    return this.offset;
  }
}

/** Builders that share an SQLite state and a bucket in memory. */
export class BuilderBench {
  static async open(): Promise<BuilderBench> {
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-builders-'));
    return new BuilderBench(folder, await openFreshState(join(folder, 'state.db')));
  }

  readonly bucket = new MemoryObjectStore();
  readonly clock = new FakeClock();
  private readonly processes: BenchProcess[] = [];

  private constructor(
    readonly folder: string,
    readonly state: State,
  ) {}

  /** @param maxUnstoredBytes how much of logs may be on its disk alone before it reads no more */
  async startProcess(maxUnstoredBytes?: number): Promise<BenchProcess> {
    const folder = mkdtempSync(join(this.folder, 'process-'));
    const process = new BenchProcess(folder, this.state, this.bucket, this.clock, maxUnstoredBytes);
    this.processes.push(process);
    await process.start();
    return process;
  }

  /** Lets time pass until something is so: fast at first, then as slowly as a machine that is busy needs to read and write. */
  async until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    for (let turns = 0; !(await isSo()); turns += 1) {
      if (turns > FAST_TURNS + SLOW_TURNS) throw new Error(`waited in vain for ${what}`);
      this.clock.advance(50);
      await (turns < FAST_TURNS ? new Promise((resolve) => setImmediate(resolve)) : pause(SLOW_TURN_MS));
    }
  }

  async close(): Promise<void> {
    for (const process of this.processes) await process.die();
    await this.state.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
