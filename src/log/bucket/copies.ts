import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Clock, FixedDelayTask } from '../../core/clock.js';
import { reasonOf } from '../../core/errors.js';
import type { Component } from '../../core/lifecycle.js';
import type { Logger } from '../../core/logger.js';
import { forEachOf, Turns } from '../../core/turns.js';
import type { TraceId } from '../../record/telemetry-record.js';
import type { ObjectStore } from '../../storage/bucket/object-store.js';
import type { JournalStore, SharedFile } from '../../storage/journal-store.js';
import type { LoggedRecord, LogRange, RecordLogReader } from '../record-log.js';
import { type DamageReport, RecordLogFiles } from '../record-log-files.js';
import { LogCopy } from './segments.js';

// Copies on this disk of what is in the bucket, made when they are asked for: so each process answers for all runs, and asks no other.

/** What copies are made with. */
export interface CopiesDeps {
  readonly bucket: Pick<ObjectStore, 'open' | 'get'>;
  readonly journal: Pick<JournalStore, 'filesOf' | 'latestFiles' | 'known'>;
  /** Copies are in it; what is there at the start is removed. */
  readonly folder: string;
  /** Reads logs that this process has itself. */
  readonly own: RecordLogReader;
  /** Whether this process has a trace's log itself. */
  readonly isOwn: (traceId: TraceId) => boolean;
  readonly onDamage: DamageReport;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What copies of logs, and of files, may take on disk, in bytes. One that is being read stays in any case. */
const LOG_BYTES = 2 * 1024 ** 3;
const FILE_BYTES = 4 * 1024 ** 3;
/** Copies of logs that are kept at most. */
const MAX_LOGS = 200;
/** How long a copy of a log counts as new, in milliseconds: clients that follow a run request it repeatedly. */
const FRESH_MS = 1_000;
/** A file that was requested this recently may be being read, in milliseconds. */
const FILE_IN_USE_MS = 120_000;
/** Files that are fetched side by side. */
const AT_ONCE = 8;
/** How often it is looked which traces were removed, in milliseconds. */
const LOOK_MS = 60_000;

/** Copies of logs and of files. Those of traces that any process removed go within a minute; no answer is made from them in any case. */
export class Copies implements Component {
  readonly name = 'copies of the bucket';
  readonly logs: LogCopies;
  readonly files: FileCopies;
  private readonly looking: FixedDelayTask;

  constructor(private readonly deps: CopiesDeps) {
    const { clock, logger } = deps;
    this.logs = new LogCopies(deps);
    this.files = new FileCopies(deps);
    this.looking = new FixedDelayTask(
      LOOK_MS,
      clock,
      () => this.removeUnknown(),
      (error) => logger.warn({ error: reasonOf(error) }, 'failed to delete copies of removed runs; retrying'),
    );
  }

  async start(): Promise<void> {
    await rm(this.deps.folder, { recursive: true, force: true });
    this.looking.start();
  }

  async shutdown(): Promise<void> {
    await this.looking.stop();
  }

  private async removeUnknown(): Promise<void> {
    for (const { room } of [this.logs, this.files]) {
      const known = await this.deps.journal.known([...room.traceIds()]);
      await room.remove((traceId) => !known.has(traceId));
    }
  }
}

/** A copy of a log or of a file. */
interface Copy {
  readonly traceId: TraceId;
  readonly sizeBytes: number;
  remove(): Promise<void>;
}

/** A copy in a room. */
interface Kept<One extends Copy> {
  readonly copy: One;
  /** Who reads it now. */
  userCount: number;
  /** It counts as being read until then, in monotonic milliseconds. */
  untilMs: number;
}

/** Room for copies: when it is full, the copy that was used longest ago goes. */
class CopyRoom<One extends Copy> {
  /** By what they are copies of, the one used longest ago first. */
  private readonly kept = new Map<string, Kept<One>>();

  constructor(
    private readonly maxBytes: number,
    private readonly maxCount: number,
    private readonly clock: Clock,
  ) {}

  get(key: string): One | undefined {
    return this.kept.get(key)?.copy;
  }

  traceIds(): ReadonlySet<TraceId> {
    return new Set([...this.kept.values()].map(({ copy }) => copy.traceId));
  }

  /** A copy that stays until `release` is called for it. */
  use(key: string, make: () => One): Kept<One> {
    const kept = this.kept.get(key) ?? { copy: make(), userCount: 0, untilMs: Number.NEGATIVE_INFINITY };
    this.kept.delete(key);
    this.kept.set(key, kept);
    kept.userCount += 1;
    return kept;
  }

  /** @param usedMs for how long it counts as being read yet, in milliseconds */
  async release(kept: Kept<One>, usedMs = 0): Promise<void> {
    kept.userCount -= 1;
    kept.untilMs = this.clock.monotonicMs() + usedMs;
    if (this.isFull()) await this.remove(() => this.isFull());
  }

  /** Removes copies of some traces, but for those that are being read. */
  async remove(isMeant: (traceId: TraceId) => boolean): Promise<void> {
    const nowMs = this.clock.monotonicMs();
    for (const [key, kept] of this.kept) {
      const { copy } = kept;
      if (kept.userCount > 0 || kept.untilMs > nowMs || !isMeant(copy.traceId)) continue;
      // Whoever asks for it meanwhile waits for that, and makes it again.
      await copy.remove();
      if (kept.userCount === 0 && copy.sizeBytes === 0) this.kept.delete(key);
    }
  }

  private isFull(): boolean {
    let bytes = 0;
    for (const { copy } of this.kept.values()) bytes += copy.sizeBytes;
    return this.kept.size > this.maxCount || bytes > this.maxBytes;
  }
}

/** Reads any trace's log: those that this process has itself where they lie, of the others a copy of what is in the bucket. */
export class LogCopies implements RecordLogReader {
  readonly room: CopyRoom<LogCopy>;
  private readonly reader: RecordLogFiles;

  constructor(private readonly deps: CopiesDeps) {
    const { clock, onDamage } = deps;
    this.room = new CopyRoom(LOG_BYTES, MAX_LOGS, clock);
    this.reader = new RecordLogFiles(this.folder, onDamage, (traceId) => this.room.get(traceId)?.sizeBytes);
  }

  async *read(traceId: TraceId, range: LogRange): AsyncIterable<readonly LoggedRecord[]> {
    const { own, isOwn } = this.deps;
    if (isOwn(traceId)) {
      yield* own.read(traceId, range);
      return;
    }
    const kept = this.use(traceId);
    try {
      if (await this.refresh(kept.copy)) yield* this.reader.read(traceId, range);
    } finally {
      await this.room.release(kept);
    }
  }

  async lengthBytes(traceId: TraceId): Promise<number> {
    const { own, isOwn } = this.deps;
    if (isOwn(traceId)) return await own.lengthBytes(traceId);
    const kept = this.use(traceId);
    try {
      return (await this.refresh(kept.copy)) ? kept.copy.sizeBytes : 0;
    } finally {
      await this.room.release(kept);
    }
  }

  private get folder(): string {
    return join(this.deps.folder, 'logs');
  }

  private use(traceId: TraceId): Kept<LogCopy> {
    return this.room.use(traceId, () => new LogCopy(join(this.folder, 'runs', traceId), traceId, this.deps));
  }

  /** @returns false if the trace is unknown */
  private async refresh(copy: LogCopy): Promise<boolean> {
    const { clock, journal } = this.deps;
    const nowMs = clock.monotonicMs();
    if (nowMs - copy.refreshedMs < FRESH_MS) return true;
    if (!(await journal.known([copy.traceId])).has(copy.traceId)) return false;
    await copy.refresh();
    copy.refreshedMs = nowMs;
    return true;
  }
}

/** Copies of files of runs, as long as there is room. */
export class FileCopies {
  readonly room: CopyRoom<FileCopy>;

  /** @param maxBytes what copies may take on disk */
  constructor(
    private readonly deps: Pick<CopiesDeps, 'bucket' | 'journal' | 'folder' | 'clock'>,
    private readonly maxBytes = FILE_BYTES,
  ) {
    this.room = new CopyRoom(maxBytes, Number.POSITIVE_INFINITY, deps.clock);
  }

  /**
   * @param name such as `telemetry.parquet`
   * @returns its absolute path, and its HTTP entity tag, which is the same in every process; `undefined` where there is none
   * @throws ArtifactError, StoreError, Error
   */
  async find(traceId: TraceId, name: string): Promise<{ readonly path: string; readonly etag: string } | undefined> {
    const file = (await this.deps.journal.filesOf(traceId)).find((one) => one.name === name);
    if (file === undefined || !(await this.bring(traceId, file))) return undefined;
    const etag = createHash('sha1').update(file.objectKey).digest('hex');
    return { path: this.pathOf(traceId, name), etag: `"${etag}"` };
  }

  /**
   * Files of runs, those that were written to last first, as far as there is room. A file that is removed meanwhile is passed over.
   * @param isWanted by a file's name
   * @returns `folder` of the runs, paths in it, and how many runs there is no room for
   * @throws ArtifactError, StoreError, Error
   */
  async bringAll(
    traceIds: readonly TraceId[],
    maxRuns: number,
    isWanted: (name: string) => boolean,
  ): Promise<{ readonly folder: string; readonly paths: readonly string[]; readonly leftOutCount: number }> {
    const wanted: (SharedFile & { readonly traceId: TraceId })[] = [];
    const seen = new Set<TraceId>();
    const leftOut = new Set<TraceId>();
    let bytes = 0;
    for (const file of await this.deps.journal.latestFiles(traceIds)) {
      const { traceId, name, sizeBytes } = file;
      if (!isWanted(name)) continue;
      if (!seen.has(traceId) && (seen.size >= maxRuns || bytes + sizeBytes > this.maxBytes)) leftOut.add(traceId);
      if (leftOut.has(traceId)) continue;
      seen.add(traceId);
      bytes += sizeBytes;
      wanted.push(file);
    }
    const paths: string[] = [];
    await forEachOf(wanted, AT_ONCE, async (file) => {
      if (await this.bring(file.traceId, file)) paths.push(`${file.traceId}/${file.name}`);
    });
    return { folder: this.runsFolder, paths: paths.sort(), leftOutCount: leftOut.size };
  }

  private get runsFolder(): string {
    return join(this.deps.folder, 'files', 'runs');
  }

  private pathOf(traceId: TraceId, name: string): string {
    return join(this.runsFolder, traceId, name);
  }

  /** @returns false where the object has gone */
  private async bring(traceId: TraceId, file: SharedFile): Promise<boolean> {
    const path = this.pathOf(traceId, file.name);
    const kept = this.room.use(path, () => new FileCopy(traceId, path, this.deps.bucket));
    try {
      return await kept.copy.bring(file);
    } finally {
      await this.room.release(kept, FILE_IN_USE_MS);
    }
  }
}

/** A copy of a file of a run. */
class FileCopy implements Copy {
  sizeBytes = 0;
  private objectKey: string | null = null;
  private readonly turns = new Turns();

  constructor(
    readonly traceId: TraceId,
    private readonly path: string,
    private readonly bucket: Pick<ObjectStore, 'open'>,
  ) {}

  /** Brings it to what is in the bucket now; readers of what it was are not interrupted. @returns false where the object has gone */
  bring({ objectKey, sizeBytes }: SharedFile): Promise<boolean> {
    return this.turns.run(async () => {
      if (this.objectKey === objectKey) return true;
      const partial = `${this.path}.partial`;
      await mkdir(dirname(this.path), { recursive: true });
      // No await once it is open: an error of its connection would have no listener.
      const content = await this.bucket.open(objectKey);
      if (content === undefined) return false;
      await pipeline(content, createWriteStream(partial));
      await rename(partial, this.path);
      this.objectKey = objectKey;
      this.sizeBytes = sizeBytes;
      return true;
    });
  }

  remove(): Promise<void> {
    return this.turns.run(async () => {
      await rm(this.path, { force: true });
      this.objectKey = null;
      this.sizeBytes = 0;
    });
  }
}
