import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CopyReader } from '../../src/cluster/cluster.js';
import { JournalObjects } from '../../src/cluster/journal-objects.js';
import { JournalWriter } from '../../src/cluster/journal-writer.js';
import { ProcessIdentity } from '../../src/cluster/membership.js';
import { OwnedTraces } from '../../src/cluster/owned-traces.js';
import { SharedFiles } from '../../src/cluster/shared-files.js';
import { ForeignSegments } from '../../src/log/foreign-segments.js';
import { RecordLogFiles } from '../../src/log/record-log-files.js';
import type { TraceId } from '../../src/record/telemetry-record.js';
import type { TraceFollower } from '../../src/run/shared-record-log.js';
import { openSqliteState } from '../../src/storage/open-sqlite-state.js';
import type { State } from '../../src/storage/state.js';
import { FakeClock } from './fake-clock.js';
import { MemoryObjectStore } from './memory-object-store.js';
import { RecordingLogger } from './recording-logger.js';

/** Turns in which a bench looks whether something is so: less time by its clock, in all, than makes a trace count as silent. */
const FAST_TURNS = 3_000;
const SLOW_TURNS = 3_000;
const SLOW_TURN_MS = 5;

/** What a process that shares a state and a bucket tells whoever follows its logs. */
export class FollowedTraces implements TraceFollower {
  readonly lengths = new Map<TraceId, number>();
  readonly adopted: TraceId[] = [];
  readonly dropped: TraceId[] = [];
  readonly stepsChanged: TraceId[] = [];
  /** Whether everything about every trace counts as told. */
  areSettled = false;

  onAppended({ traceId, lengthBytes }: { readonly traceId: TraceId; readonly lengthBytes: number }): void {
    this.lengths.set(traceId, lengthBytes);
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

/** One of the processes of a bench, without what follows its logs. */
export class BenchProcess {
  readonly logger = new RecordingLogger();
  readonly followed = new FollowedTraces();
  readonly identity: ProcessIdentity;
  readonly writer: JournalWriter;
  readonly owned: OwnedTraces;
  readonly reader: CopyReader;

  constructor(
    readonly folder: string,
    readonly state: State,
    readonly bucket: MemoryObjectStore,
    readonly clock: FakeClock,
  ) {
    const { followed: follower, logger } = this;
    const { cluster: stores } = state;
    const newId = () => randomUUID();
    this.identity = new ProcessIdentity('folder', newId);
    const processId = () => this.identity.processId;
    const objects = new JournalObjects(bucket);
    const copies = { bucket, objects, journal: stores.journal, traces: stores.traces };
    const files = new SharedFiles({ stores, bucket, processId, folder, newId });
    const destinations = () => [];
    this.owned = new OwnedTraces({
      ...{ stores, files, follower, processId, destinations, copies, folder, clock, logger },
      ...{ nameHoldMs: 6_000, silenceMs: 600_000 },
    });
    const foreign = new ForeignSegments(join(folder, 'foreign'), { isSynced: false, listeners: [] });
    const { journal } = stores;
    this.writer = new JournalWriter({ bucket, journal, objects, foreign, processId, onAccepted: () => {}, logger });
    const own = new RecordLogFiles(
      folder,
      () => {},
      (traceId) => this.owned.lengthBytes(traceId),
    );
    this.reader = new CopyReader({
      ...{ copies, traces: stores.traces, folder: join(folder, 'read'), clock, onDamage: () => {} },
      own: {
        read: own.read.bind(own),
        lengthBytes: own.lengthBytes.bind(own),
        has: (traceId) => this.owned.lengthBytes(traceId) !== undefined,
      },
    });
  }

  async start(): Promise<void> {
    await this.state.cluster.members.join(this.identity.processId, 3_600_000);
    await this.writer.start();
    await this.reader.start();
    await this.owned.start();
  }

  /** As after `kill -9`, and when its lease has run out. */
  async die(): Promise<void> {
    await this.owned.shutdown();
    await this.state.cluster.members.leave(this.identity.processId);
  }
}

/** Processes that share an SQLite state and a bucket in memory. */
export class ClusterBench {
  static async open(): Promise<ClusterBench> {
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-cluster-'));
    return new ClusterBench(folder, await openSqliteState(join(folder, 'state.db')));
  }

  readonly bucket = new MemoryObjectStore();
  readonly clock = new FakeClock();
  private readonly processes: BenchProcess[] = [];

  private constructor(
    readonly folder: string,
    readonly state: State,
  ) {}

  async startProcess(): Promise<BenchProcess> {
    const folder = mkdtempSync(join(this.folder, 'process-'));
    const process = new BenchProcess(folder, this.state, this.bucket, this.clock);
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
    for (const { owned, reader } of this.processes) {
      await owned.shutdown();
      await reader.shutdown();
    }
    await this.state.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
