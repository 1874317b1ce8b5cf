import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import {
  type Appended,
  LOG_FILE,
  makeFolder,
  RESOURCES_FILE,
  TraceLog,
  type TraceLogOptions,
} from '../log/trace-log.js';
import { PagePool } from '../record/record-page.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { ObjectStore } from '../storage/bucket/object-store.js';
import type { JournalPart, JournalStore } from '../storage/cluster/journal-store.js';
import type { SharedTrace, SharedTraceStore } from '../storage/cluster/shared-trace-store.js';
import type { JournalObjects } from './journal-objects.js';
import { decodePart } from './part-encoding.js';

/** What copies are made of. */
export interface TraceCopyDeps {
  readonly bucket: Pick<ObjectStore, 'open'>;
  readonly objects: JournalObjects;
  readonly journal: Pick<JournalStore, 'list'>;
  readonly traces: Pick<SharedTraceStore, 'find' | 'filesOf'>;
}

/** The files that a log is. */
export const STORED_LOG_FILES: readonly string[] = [LOG_FILE, RESOURCES_FILE];

/** Parts that are asked for at a time. */
const PARTS_AT_A_TIME = 200;
/** How often a copy is begun anew because the trace was stored meanwhile. */
const MAX_TRIES = 5;
/**
 * Time is counted in parts, and a wait for a span's name is longer than any trace: it is over when a part says so, never by a
 * clock. That is what makes every copy the same.
 */
const HOLD = 2 ** 40;
const OPTIONS: TraceLogOptions = {
  // Whatever is lost is made again of its parts.
  isSynced: false,
  nameHoldMs: HOLD,
  syncFolder: async () => {},
  pages: new PagePool(),
};

/**
 * A trace's record log on this machine, made of what is in the bucket: the stored log and the parts after it, one after the
 * other. The same parts give the same bytes in every process, so offsets in the log mean the same everywhere.
 */
export class TraceCopy {
  /** The log contains the parts up to this one. */
  appliedPart = 0;
  private log: TraceLog | undefined;
  private bornUnixMs = 0;
  private length = 0;
  private pending = 0;
  private isMade = false;
  private tail: Promise<unknown> = Promise.resolve();

  /** @param folder of the trace, which is not there yet */
  constructor(
    readonly folder: string,
    readonly traceId: TraceId,
    private readonly deps: TraceCopyDeps,
  ) {}

  get lengthBytes(): number {
    return this.length;
  }

  /** Log records that wait for their span's name. */
  get pendingCount(): number {
    return this.pending;
  }

  /** Memory that it takes, in bytes, about. */
  get memoryBytes(): number {
    return this.log?.memoryBytes ?? 0;
  }

  /**
   * Takes in what was accepted up to a part.
   * @param onAppended called for each part; its argument is only valid during the call
   * @throws ArtifactError, StoreError, Error; where its files could not be written the copy is made anew the next time
   */
  async bringTo(
    trace: Pick<SharedTrace, 'lastPart' | 'storedPart' | 'bornUnixMs'>,
    onAppended?: (appended: Appended) => void,
  ): Promise<void> {
    await this.inTurn(async () => {
      let goal = trace;
      for (let tries = 1; this.appliedPart < goal.lastPart || !this.isOf(goal); tries += 1) {
        const isToBegin = !this.isOf(goal) || this.appliedPart < goal.storedPart;
        const isBegun = !isToBegin || (await this.begin(goal));
        if (isBegun && (await this.applyUpTo(goal.lastPart, onAppended))) return;
        const now = await this.deps.traces.find(this.traceId);
        if (now === undefined || tries >= MAX_TRIES) throw new Error(`parts of trace ${this.traceId} are missing`);
        goal = now;
      }
    });
  }

  /** One that was removed, and has come again, has parts of its own. */
  private isOf({ bornUnixMs }: Pick<SharedTrace, 'bornUnixMs'>): boolean {
    return this.isMade && this.bornUnixMs === bornUnixMs;
  }

  /** Whether it is there: not before it was first brought anywhere, and not after its files could not be written. */
  get isThere(): boolean {
    return this.isMade;
  }

  /** Closes its files, which are opened again when they are needed; not while something waits, of which they do not say since when. */
  async rest(): Promise<void> {
    await this.inTurn(async () => {
      if (this.pending === 0) await this.closeLog();
    });
  }

  /** Closes its files for good. */
  async close(): Promise<void> {
    await this.inTurn(() => this.closeLog());
  }

  /** Removes it. */
  async remove(): Promise<void> {
    await this.inTurn(() => this.reset());
  }

  private inTurn<T>(action: () => Promise<T>): Promise<T> {
    const done = this.tail.then(action);
    this.tail = done.catch(() => undefined);
    return done;
  }

  /** @returns false where a part is not there: it is in the stored log by now */
  private async applyUpTo(lastPart: number, onAppended?: (appended: Appended) => void): Promise<boolean> {
    while (this.appliedPart < lastPart) {
      const parts = await this.deps.journal.list(this.traceId, this.appliedPart, PARTS_AT_A_TIME);
      if (parts.length === 0) return false;
      for (const part of parts) {
        if (part.part !== this.appliedPart + 1) return false;
        const appended = await this.apply(part);
        this.appliedPart = part.part;
        this.length = appended.lengthBytes;
        if (!appended.isEmpty) onAppended?.(appended);
        appended.release();
      }
    }
    return true;
  }

  private async apply({ part, objectKey, fromByte, toByte }: JournalPart): Promise<Appended> {
    const occurrences = new Map<string, number>();
    const batches =
      objectKey === null ? [] : decodePart(this.traceId, await this.deps.objects.read(objectKey, fromByte, toByte));
    const additions = batches.map((batch) => ({ batch, occurrences }));
    try {
      this.log ??= await TraceLog.open(this.folder, this.traceId, OPTIONS, part);
      return await this.log.append(additions, objectKey === null ? toByte + HOLD : part);
    } catch (error) {
      // Whatever was written of it is not to be counted on.
      await this.reset();
      throw error;
    } finally {
      this.pending = this.log?.pendingCount ?? 0;
    }
  }

  /** Begins with the stored log, or with nothing where there is none. @returns false where another one was stored meanwhile */
  private async begin({ storedPart, bornUnixMs }: Pick<SharedTrace, 'storedPart' | 'bornUnixMs'>): Promise<boolean> {
    await this.reset();
    await makeFolder(this.folder, true);
    if (storedPart > 0) {
      const files = await this.deps.traces.filesOf(this.traceId);
      for (const name of STORED_LOG_FILES) {
        const file = files.find((one) => one.name === name);
        const content = file && (await this.deps.bucket.open(file.objectKey));
        if (content === undefined) return false;
        await pipeline(content, createWriteStream(join(this.folder, name)));
      }
    }
    this.log = await TraceLog.open(this.folder, this.traceId, OPTIONS, storedPart);
    this.length = this.log.lengthBytes;
    this.appliedPart = storedPart;
    this.bornUnixMs = bornUnixMs;
    this.isMade = true;
    return true;
  }

  private async closeLog(): Promise<void> {
    const { log } = this;
    this.log = undefined;
    await log?.close();
  }

  private async reset(): Promise<void> {
    await this.closeLog().catch(() => undefined);
    await rm(this.folder, { recursive: true, force: true });
    this.isMade = false;
    this.appliedPart = 0;
    this.length = 0;
    this.pending = 0;
  }
}
