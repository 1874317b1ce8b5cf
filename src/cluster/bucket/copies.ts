import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Clock, FixedDelayTask } from '../../core/clock.js';
import { reasonOf } from '../../core/errors.js';
import type { Component } from '../../core/lifecycle.js';
import type { Logger } from '../../core/logger.js';
import { forEachOf, KeyedTurns } from '../../core/turns.js';
import type { LoggedRecord, LogRange, RecordLogReader } from '../../log/record-log.js';
import { type DamageReport, RecordLogFiles } from '../../log/record-log-files.js';
import type { TraceId } from '../../record/telemetry-record.js';
import type { ObjectStore } from '../../storage/bucket/object-store.js';
import type { JournalStore, SharedFile } from '../../storage/journal-store.js';
import { LogCopy } from './segments.js';

/** What copies are made with. */
export interface CopiesDeps {
  readonly bucket: Pick<ObjectStore, 'open' | 'get'>;
  readonly journal: Pick<JournalStore, 'filesOf' | 'latestFiles' | 'known'>;
  /** Copies are in it; what is there at the start is removed. */
  readonly folder: string;
  /** Reads logs that this process builds. */
  readonly localReader: RecordLogReader;
  /** Returns whether this process builds a trace's log. */
  readonly isLocal: (traceId: TraceId) => boolean;
  readonly onDamage: DamageReport;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What copies may take on disk, in bytes. Those that may be being read stay in any case. */
const MAX_BYTES = 6 * 1024 ** 3;
/** A copy that was used this recently may be being read, in milliseconds. */
const IN_USE_MS = 120_000;
/** How long a copy of a log counts as new, in milliseconds: clients that follow a run request it repeatedly. */
const FRESH_MS = 1_000;
/** Files that are fetched side by side. */
const AT_ONCE = 8;
/** How often copies that can go are removed, in milliseconds. */
const LOOK_MS = 30_000;

/** Copies of what there is of a trace; times in monotonic milliseconds. */
interface TraceCopies {
  readonly log: LogCopy;
  /** By name. */
  readonly files: Map<string, SharedFile>;
  /** When the log was brought to what is in the bucket last. */
  refreshedMs: number;
  usedMs: number;
}

/**
 * Copies on this disk of what is in the bucket, made when they are asked for: so each process answers for all runs, and asks no
 * other. Those of traces that any process removed go within minutes; no answer is made from them in any case.
 */
export class Copies implements Component, RecordLogReader {
  readonly name = 'copies of the bucket';
  private readonly traces = new Map<TraceId, TraceCopies>();
  private readonly turns = new KeyedTurns<TraceId>();
  private readonly logs: RecordLogFiles;
  private readonly looking: FixedDelayTask;

  /** @param maxBytes what copies may take on disk */
  constructor(
    private readonly deps: CopiesDeps,
    private readonly maxBytes = MAX_BYTES,
  ) {
    const { clock, logger, folder, onDamage } = deps;
    const lengthOf = (traceId: TraceId) => this.traces.get(traceId)?.log.stored.logBytes;
    this.logs = new RecordLogFiles(join(folder, 'logs'), onDamage, lengthOf);
    this.looking = new FixedDelayTask(
      LOOK_MS,
      clock,
      () => this.removeNeedless(),
      (error) => logger.warn({ error: reasonOf(error) }, 'failed to delete copies of runs; retrying'),
    );
  }

  async start(): Promise<void> {
    await rm(this.deps.folder, { recursive: true, force: true });
    this.looking.start();
  }

  async shutdown(): Promise<void> {
    await this.looking.stop();
  }

  /** Reads any trace's log: the log that this process builds, or a copy. */
  async *read(traceId: TraceId, range: LogRange): AsyncIterable<readonly LoggedRecord[]> {
    if (this.deps.isLocal(traceId)) {
      yield* this.deps.localReader.read(traceId, range);
      return;
    }
    if ((await this.refresh(traceId)) === undefined) return;
    for await (const records of this.logs.read(traceId, range)) {
      this.use(traceId);
      yield records;
    }
  }

  async lengthBytes(traceId: TraceId): Promise<number> {
    if (this.deps.isLocal(traceId)) return await this.deps.localReader.lengthBytes(traceId);
    return (await this.refresh(traceId))?.stored.logBytes ?? 0;
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
   * Files of runs, those that were written to last first, as far as there is room. A file that is removed meanwhile is skipped.
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

  /** Brings the copy of a log to what is in the bucket; `undefined` if the trace is unknown. */
  private async refresh(traceId: TraceId): Promise<LogCopy | undefined> {
    const { clock, journal } = this.deps;
    const nowMs = clock.monotonicMs();
    const { refreshedMs = Number.NEGATIVE_INFINITY } = this.traces.get(traceId) ?? {};
    if (nowMs - refreshedMs >= FRESH_MS) {
      if (!(await journal.known([traceId])).has(traceId)) return undefined;
      await this.turns.run(traceId, async () => {
        const copies = this.use(traceId);
        // Others take it for new as it is.
        if (nowMs - copies.refreshedMs < FRESH_MS) return;
        await copies.log.refresh();
        copies.refreshedMs = nowMs;
      });
    }
    return this.use(traceId).log;
  }

  private get runsFolder(): string {
    return join(this.deps.folder, 'files', 'runs');
  }

  private pathOf(traceId: TraceId, name: string): string {
    return join(this.runsFolder, traceId, name);
  }

  /** Brings a file to what is in the bucket now; readers of what it was are not interrupted. @returns false where the object has gone */
  private bring(traceId: TraceId, file: SharedFile): Promise<boolean> {
    return this.turns.run(traceId, async () => {
      const { files } = this.use(traceId);
      if (files.get(file.name)?.objectKey === file.objectKey) return true;
      const path = this.pathOf(traceId, file.name);
      await mkdir(dirname(path), { recursive: true });
      // No await once it is open: an error of its connection would have no listener.
      const content = await this.deps.bucket.open(file.objectKey);
      if (content === undefined) return false;
      await pipeline(content, createWriteStream(`${path}.partial`));
      await rename(`${path}.partial`, path);
      files.set(file.name, file);
      return true;
    });
  }

  private use(traceId: TraceId): TraceCopies {
    const log = () => new LogCopy(join(this.deps.folder, 'logs', 'runs', traceId), traceId, this.deps);
    const none = { files: new Map(), refreshedMs: Number.NEGATIVE_INFINITY, usedMs: 0 };
    const copies = this.traces.get(traceId) ?? { log: log(), ...none };
    copies.usedMs = this.deps.clock.monotonicMs();
    this.traces.set(traceId, copies);
    return copies;
  }

  /** Removes copies of traces that are gone, and those used longest ago while there is no room for all. */
  private async removeNeedless(): Promise<void> {
    const known = await this.deps.journal.known([...this.traces.keys()]);
    const byUse = [...this.traces].sort(([, a], [, b]) => a.usedMs - b.usedMs);
    let bytes = byUse.reduce((sum, [, copies]) => sum + sizeOf(copies), 0);
    const unusedMs = this.deps.clock.monotonicMs() - IN_USE_MS;
    for (const [traceId, copies] of byUse) {
      if (copies.usedMs > unusedMs || (known.has(traceId) && bytes <= this.maxBytes)) continue;
      bytes -= sizeOf(copies);
      // Whoever asks for one meanwhile waits for that, and makes it again.
      await this.turns.run(traceId, async () => {
        if (copies.usedMs > unusedMs) return;
        this.traces.delete(traceId);
        await copies.log.remove();
        await rm(join(this.runsFolder, traceId), { recursive: true, force: true });
      });
    }
  }
}

function sizeOf({ log, files }: TraceCopies): number {
  return [...files.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, log.stored.logBytes);
}
