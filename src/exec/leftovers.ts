import { existsSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, type Timer, whenAborted } from '../core/clock.js';
import { namesIn } from '../core/folders.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { isInheritedByOthers, isWrittenByOthers } from '../core/process-tree.js';
import {
  batchesOf,
  JsonlTail,
  OtlpJsonFile,
  type OtlpReading,
  REJECTS_FILE,
  type Reject,
  RejectFile,
  RetryingConsumer,
  readRecords,
} from '../files/feature.js';
import { stepInEnvironment } from '../record/attributes.js';
import type { Delivery, RecordConsumer } from '../record/record-batch.js';
import type { TelemetryRecord, TraceId, UnixNano } from '../record/telemetry-record.js';
import type { StepRegistry } from '../run/step-registry.js';
import { ArtifactError, type ArtifactErrorCode, type ArtifactSink } from '../storage/artifacts.js';
import { DataFolderInUseError } from '../storage/data-folder.js';
import { DataFolderLock } from '../storage/data-folder-lock.js';
import type { StepPosition } from '../storage/steps.js';
import type { CommandEntry, LeftFile } from './command-entry.js';
import { ENGINE_FILE, ENTRY_FILE, SPOOL_FOLDER, SPOOLED_OTLP_FILE } from './command-folder.js';
import { guessResource, JsonlKeys } from './command-records.js';
import { CommandSteps } from './command-steps.js';
import { announceUploads, type Upload, upload } from './keep-artifacts.js';

/** What taking in spooled commands needs. */
export interface LeftoversDeps {
  readonly consumer: RecordConsumer;
  readonly registry: Pick<StepRegistry, 'register' | 'attach' | 'end' | 'expectArtifacts' | 'endArtifacts'>;
  readonly artifacts: ArtifactSink;
  readonly otlp: () => OtlpReading;
  /** Sends what the consumer holds back; called when a command's records were consumed. */
  readonly settle?: () => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Process id, for the lock's message. */
  readonly pid: number;
}

/** How often the folder is looked at, in milliseconds. */
const LOOK_MS = 30_000;
/** A folder without a lock is left alone for so long after it was made, in milliseconds: its command may just be starting. */
const YOUNG_MS = 60_000;
/** A run waits for artifacts that cannot be kept for so long after its command's end, in milliseconds: a day. */
const MAX_UPLOAD_MS = 86_400_000;
/** Artifacts that fail for these reasons are left out: no later time changes them. */
const LEFT_OUT: ReadonlySet<ArtifactErrorCode> = new Set(['tooLarge', 'tooMany', 'conflict', 'refused']);

/**
 * Takes in what commands under `exec` could not bring to where it belongs: their process was killed, their bridge died,
 * the data folder was full. Each command's folder is locked while the command is at work, by the kernel, so that one that
 * died is known. What was taken in before is taken again, and written once. An engine that is still writing is left until
 * it has ended, and so is what a command left in the background.
 */
export class Leftovers implements Component {
  readonly name = 'spool';
  private readonly stop = new AbortController();
  private timer: Timer | undefined;
  private working: Promise<void> = Promise.resolve();
  private readonly rejectFile: RejectFile;
  /** Traces of what was taken in. */
  readonly traceIds = new Set<TraceId>();

  /** @param to only commands that were to go to this bridge; those that may go anywhere where it is `null`. */
  constructor(
    private readonly dataFolder: string,
    private readonly to: string | null,
    private readonly deps: LeftoversDeps,
  ) {
    const { clock, logger } = deps;
    this.rejectFile = new RejectFile(join(dataFolder, REJECTS_FILE), clock, (trouble) => logger.error({}, trouble));
  }

  async start(): Promise<void> {
    this.look();
  }

  /** Resolves when everything that was there at the start, or at the last look, was taken in, or on abort. */
  async looked(deadline: AbortSignal): Promise<void> {
    await Promise.race([this.working, whenAborted(deadline)]);
  }

  async shutdown(): Promise<void> {
    this.timer?.cancel();
    this.stop.abort();
    await this.working;
  }

  /**
   * Takes in the folder of one command, wherever it is, and leaves it there.
   * @returns how many records it has, each counted once
   * @throws DataFolderInUseError while its command is running
   */
  async takeIn(folder: string): Promise<number> {
    const { readCommandEntry } = await import('./command-entry.js');
    const lock = this.lock(folder);
    try {
      return await this.take(folder, await readCommandEntry(join(folder, ENTRY_FILE)), false);
    } finally {
      lock.release();
    }
  }

  private look(): void {
    this.working = this.takeAll().catch((error: unknown) => {
      if (this.stop.signal.aborted) return;
      this.deps.logger.error({ error: String(error) }, 'failed to read spooled telemetry; retrying');
    });
    this.timer = this.deps.clock.after(LOOK_MS, () => void this.working.then(() => this.look()));
  }

  private async takeAll(): Promise<void> {
    const folder = join(this.dataFolder, SPOOL_FOLDER);
    for (const name of await namesIn(folder)) {
      if (this.stop.signal.aborted) return;
      await this.tryOne(join(folder, name));
    }
  }

  private async tryOne(folder: string): Promise<void> {
    const { clock, logger, pid } = this.deps;
    const made = await stat(folder).catch(() => undefined);
    const isLockable = (await stat(join(folder, 'lock.db')).catch(() => undefined)) !== undefined;
    if (made === undefined || (!isLockable && clock.nowUnixMs() - made.mtimeMs < YOUNG_MS)) return;
    // Loaded where there is one: most starts find none.
    const { readCommandEntry } = await import('./command-entry.js');
    const entry = await readCommandEntry(join(folder, ENTRY_FILE));
    if ((entry?.to ?? null) !== this.to) return;
    let lock: DataFolderLock;
    try {
      lock = this.lock(folder);
    } catch (error) {
      // Its command is at work.
      if (error instanceof DataFolderInUseError) return;
      throw error;
    }
    try {
      // An engine may outlive its command and the `exec` that ran it: it is taken in with its end.
      const file = fileOf(folder, entry);
      const step = file?.traceIds === null || entry === undefined ? undefined : stepInEnvironment(entry.start.stepId);
      if (await isWrittenByOthers(file?.path ?? '', pid, step)) return;
      // What its command left in the background may still run one.
      const hasEnded = entry !== undefined && entry.end !== null;
      if (hasEnded && (await isInheritedByOthers(stepInEnvironment(entry.start.stepId), pid))) return;
      const recordCount = await this.take(folder, entry, true);
      logger.info({ folder, recordCount }, "a command's telemetry was taken in that was left behind");
      await rm(folder, { recursive: true, force: true });
    } finally {
      lock.release();
    }
  }

  private lock(folder: string): DataFolderLock {
    const { clock, pid } = this.deps;
    return DataFolderLock.acquire(folder, { pid, since: new Date(clock.nowUnixMs()).toISOString(), address: null });
  }

  /**
   * @param entry `undefined` where it was not written, or is damaged: then the records are taken, of no known step.
   * @param isRemoved whether the folder goes when all is taken: then each artifact goes when it is kept, so that the next start
   * continues
   */
  private async take(folder: string, entry: CommandEntry | undefined, isRemoved: boolean): Promise<number> {
    const { registry, settle, clock } = this.deps;
    const { copiedArtifacts, copiedSteps } = await import('./found-artifacts.js');
    const patient = new RetryingConsumer(this.deps.consumer, clock, this.stop.signal);
    const lastSign = new LastSign(entry?.start.startedUnixMs ?? 0, patient);
    const steps =
      entry && new CommandSteps(async () => ({ consumer: lastSign, registry }), entry.start, entry.resourceAttributes);
    const consumer = steps ?? patient;
    const file = fileOf(folder, entry);
    const inJsonl = new Map<TraceId, JsonlKeys>();
    const position = entry && (await registry.register(entry.start));
    const recordCount =
      (await this.takeJsonl(file, consumer, inJsonl)) + (await this.takeOtlp(folder, consumer, inJsonl));
    await settle?.();
    if (entry !== undefined && steps !== undefined && position !== undefined) {
      const uploads = [{ start: entry.start, position, artifacts: await copiedArtifacts(folder, null) }];
      for (const stepId of await copiedSteps(folder)) {
        const start = { ...entry.start, stepId, runOf: entry.start.stepId };
        uploads.push({
          start,
          position: await registry.register(start),
          artifacts: await copiedArtifacts(folder, stepId),
        });
      }
      await steps.attach(registry);
      await announceUploads(registry, uploads);
      const { ending, endedUnixMs } = entry.end ?? { ending: { kind: 'unknown' }, endedUnixMs: lastSign.unixMs };
      await steps.end(registry, ending, endedUnixMs);
      // Steps without records here were registered; of those that were not, nothing else is known.
      for (const { start } of uploads.slice(1)) await registry.end(start.stepId, { kind: 'within' }, endedUnixMs);
      for (const one of uploads) await this.upload(one, entry.end?.endedUnixMs ?? clock.nowUnixMs(), isRemoved);
    }
    return recordCount;
  }

  private async takeJsonl(
    file: CommandFile | null,
    consumer: RecordConsumer,
    inJsonl: Map<TraceId, JsonlKeys>,
  ): Promise<number> {
    if (file === null) return 0;
    const tail = new JsonlTail(file.path, { from: file.from }, this.deps.clock);
    const own = file.traceIds === null ? undefined : new Set(file.traceIds);
    tail.finish();
    let recordCount = 0;
    for await (const { lines, rejects: others } of tail.chunks(this.stop.signal)) {
      const { records: all, rejects } = readRecords(lines);
      const records = own === undefined ? all : all.filter(({ traceId }) => own.has(traceId));
      await this.keepRejects(file.path, [...others, ...rejects]);
      recordCount += records.length;
      const batches = batchesOf(records).map((batch) => {
        const keys = inJsonl.get(batch.traceId) ?? new JsonlKeys();
        inJsonl.set(batch.traceId, keys);
        this.traceIds.add(batch.traceId);
        keys.noteAll(batch);
        return { ...batch, resource: guessResource(batch) };
      });
      if (batches.length > 0) await consumer.consume({ batches, passthrough: [] });
    }
    this.stop.signal.throwIfAborted();
    return recordCount;
  }

  /** What its JSONL has as well is left out. */
  private async takeOtlp(
    folder: string,
    consumer: RecordConsumer,
    inJsonl: ReadonlyMap<TraceId, JsonlKeys>,
  ): Promise<number> {
    const path = join(folder, SPOOLED_OTLP_FILE);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) return 0;
    let recordCount = 0;
    const file = new OtlpJsonFile(path, found.size, this.deps.otlp());
    for await (const { delivery, rejects } of file.read(this.stop.signal)) {
      await this.keepRejects(path, rejects);
      const batches = delivery.batches.flatMap(({ traceId, resource, records: all }) => {
        const keys = inJsonl.get(traceId);
        const records = keys === undefined ? all : all.filter((record) => keys.lacks(record));
        return records.length === 0 ? [] : [{ traceId, resource, records }];
      });
      for (const { traceId, records } of batches) {
        recordCount += records.length;
        this.traceIds.add(traceId);
      }
      if (batches.length > 0 || delivery.passthrough.length > 0) await consumer.consume({ ...delivery, batches });
    }
    return recordCount;
  }

  /** @throws ArtifactError when it is to be tried again; what will never be taken is left out, and noted on the run. */
  private async upload(one: RegisteredUpload, endedUnixMs: number, isRemoved: boolean): Promise<void> {
    const { logger, registry, clock, artifacts: sink } = this.deps;
    const { signal } = this.stop;
    const { position } = one;
    const onKept = async ({ file }: { readonly file: string }) => {
      if (isRemoved) await rm(file, { force: true });
    };
    const keeping = { sink, clock, signal, patienceMs: 0, ownFaults: LEFT_OUT, onKept };
    const { left, refused, reason } = await upload(registry, one, position, keeping);
    for (const { path } of refused) {
      logger.warn({ run: position.runId, step: position.stepIndex, path, reason }, 'skipped an artifact');
    }
    if (left.length === 0) return;
    // The run waits for them no longer, though they may still come.
    const isLost = clock.nowUnixMs() - endedUnixMs > MAX_UPLOAD_MS;
    if (isLost && !signal.aborted) await registry.endArtifacts(one.start.stepId, reason);
    throw new ArtifactError('unavailable', `artifacts of step ${one.start.stepId} are not kept: ${reason}`);
  }

  private async keepRejects(path: string, rejects: readonly Reject[]): Promise<void> {
    if (rejects.length === 0) return;
    const { path: kept } = this.rejectFile;
    this.deps.logger.warn({ path, count: rejects.length, kept }, 'skipped lines that could not be read');
    await this.rejectFile.add(path, rejects);
  }
}

type RegisteredUpload = Upload & { readonly position: StepPosition };

/** When a command was last heard of whose end nobody saw: its last record, else its start. */
class LastSign implements RecordConsumer {
  constructor(
    public unixMs: number,
    private readonly target: RecordConsumer,
  ) {}

  consume(delivery: Delivery): Promise<void> {
    for (const { records } of delivery.batches) {
      for (const record of records) this.unixMs = Math.max(this.unixMs, Math.ceil(Number(timeOf(record)) / 1e6));
    }
    return this.target.consume(delivery);
  }
}

function timeOf(record: TelemetryRecord): UnixNano {
  switch (record.recordType) {
    case 'LogRecord':
      return record.timeUnixNano;
    case 'SpanStart':
      return record.startTimeUnixNano;
    case 'SpanEnd':
      return record.endTimeUnixNano;
  }
}

/** @param traceIds `null` for a file of the command alone */
type CommandFile = Pick<LeftFile, 'path' | 'from'> & { readonly traceIds: readonly TraceId[] | null };

/** The engine's JSONL of a command: in its folder, wherever that is now, or the user's own. */
function fileOf(folder: string, entry: CommandEntry | undefined): CommandFile | null {
  const own = { path: join(folder, ENGINE_FILE), from: undefined, traceIds: null };
  if (entry === undefined || existsSync(own.path)) return own;
  return entry.file === null ? null : { ...entry.file, traceIds: ownTraces(entry.file) };
}

/**
 * The command's traces in a file of the user's own. Where none was known to be the command's, it is the only one that came while the
 * command was at work; what came later is of others.
 */
function ownTraces({ traceIds, seenTraceIds }: LeftFile): readonly TraceId[] {
  if (traceIds.length > 0) return traceIds;
  return seenTraceIds.length === 1 ? seenTraceIds : [];
}
