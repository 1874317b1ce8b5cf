import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isDynamicPattern } from 'tinyglobby';
import { type Clock, pause } from '../core/clock.js';
import { errorCode, reasonOf } from '../core/errors.js';
import type { RecordConsumer } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';
import { findPaths } from './find-paths.js';
import type { FollowPositions } from './follow-positions.js';
import { JsonlTail } from './jsonl-tail.js';
import { readRecords } from './read-record.js';
import { batchesOf, joinBatches, type Reject, SourceError } from './record-source.js';
import type { TailPosition } from './tail-position.js';

/** Dependencies of a follower. */
export interface FollowerDeps {
  readonly consumer: RecordConsumer;
  readonly positions: FollowPositions;
  readonly clock: Clock;
  readonly workingDir: string;
  /** Makes everything before a position durable; called before positions are saved. */
  settle(): Promise<void>;
  /** Called after records of a file were consumed. */
  onTaken(path: string, taken: TakenRange): Promise<void>;
  /** Called when a file cannot be read for now; it will be tried again. */
  onTrouble(message: string): void;
}

/** Files in a folder that are followed: the engine's JSONL. */
const NAMES = '*.{jsonl,ndjson}';
/** How often folders and patterns are searched and positions saved, in milliseconds. */
const ROUND_MS = 1_000;
/** The most files that are read at the same time; further ones wait until one is closed. */
const MAX_OPEN = 64;
/** A file of a folder or pattern is closed after it has not changed for this long, in milliseconds, and reopened when it changes. */
const IDLE_MS = 10_000;
/** The key in `troubled` for positions that cannot be saved. */
const POSITIONS = '';

/**
 * Follows files while they are written: named files, and those that appear in folders or match patterns. Each is read from where it was left; its position is saved every second, after its records
 * are durable.
 */
export class FileFollower {
  private readonly open = new Map<string, Promise<void>>();
  /** Closed files with their state when they were last read, to notice changes. */
  private readonly quiet = new Map<string, string>();
  private readonly troubled = new Set<string>();
  private failure: { readonly cause: unknown } | undefined;

  /** @param operands paths, folders and patterns */
  constructor(
    private readonly operands: readonly string[],
    private readonly deps: FollowerDeps,
  ) {}

  /**
   * Follows the files until the signal aborts; resolves when everything that was read is reported.
   * @throws what the consumer throws
   */
  async run(signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const ended = AbortSignal.any([signal, stop.signal]);
    while (!ended.aborted && this.failure === undefined) {
      for (const [path, isNamed] of await this.findFiles()) {
        if (this.open.size < MAX_OPEN && !this.open.has(path) && (isNamed || (await this.hasChanged(path)))) {
          this.begin(path, isNamed, ended);
        }
      }
      await pause(this.deps.clock, ROUND_MS, ended);
      await this.savePositions();
    }
    stop.abort();
    await Promise.all(this.open.values());
    await this.savePositions();
    if (this.failure !== undefined) throw this.failure.cause;
  }

  /** Saves the positions. A failure only means that some lines are read again. */
  private async savePositions(): Promise<void> {
    try {
      await this.deps.positions.save(() => this.deps.settle());
      this.troubled.delete(POSITIONS);
    } catch (error) {
      const reason = reasonOf(error);
      this.report(
        POSITIONS,
        `how far files were taken is not saved: ${reason}; the next start reads some of them again`,
      );
    }
  }

  private async findFiles(): Promise<ReadonlyMap<string, boolean>> {
    const { workingDir } = this.deps;
    const files = new Map<string, boolean>();
    for (const operand of this.operands) {
      const path = resolve(workingDir, operand);
      const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() === true;
      // A name that does not exist yet may be created at any time.
      if (!isFolder && !isDynamicPattern(operand)) files.set(path, true);
      else for (const found of await this.find(operand)) files.set(resolve(workingDir, found), false);
    }
    return files;
  }

  private async find(operand: string): Promise<readonly string[]> {
    try {
      return await findPaths(operand, { workingDir: this.deps.workingDir, names: NAMES });
    } catch (error) {
      if (error instanceof SourceError && error.code === 'notFound') return [];
      throw error;
    }
  }

  private async hasChanged(path: string): Promise<boolean> {
    return this.quiet.get(path) !== (await stateOf(path));
  }

  private begin(path: string, isNamed: boolean, signal: AbortSignal): void {
    const following = this.follow(path, isNamed, signal)
      .catch((cause: unknown) => {
        // A name that has become a folder is searched from the next round on.
        if (cause instanceof SourceError && errorCode(cause.cause) === 'EISDIR') return;
        if (cause instanceof SourceError) this.report(path, cause.message);
        else if (!signal.aborted) this.failure ??= { cause };
      })
      .finally(() => this.open.delete(path));
    this.open.set(path, following);
  }

  private async follow(path: string, isNamed: boolean, signal: AbortSignal): Promise<void> {
    const { clock, consumer, positions } = this.deps;
    const idle = new AbortController();
    const tail = new JsonlTail(path, { from: await positions.find(path) }, clock);
    const state = await stateOf(path);
    this.quiet.set(path, state);
    let timer = isNamed ? undefined : clock.after(IDLE_MS, () => idle.abort());
    try {
      await feedTail(tail, consumer, AbortSignal.any([signal, idle.signal]), async (taken) => {
        this.troubled.delete(path);
        if (taken.position !== undefined) positions.note(path, taken.position);
        await this.deps.onTaken(path, taken);
        if (isNamed) return;
        timer?.cancel();
        timer = clock.after(IDLE_MS, () => idle.abort());
        this.quiet.set(path, await stateOf(path));
      });
    } finally {
      timer?.cancel();
    }
  }

  private report(path: string, message: string): void {
    if (!this.troubled.has(path)) this.deps.onTrouble(message);
    this.troubled.add(path);
  }
}

async function stateOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found === undefined ? 'gone' : `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}`;
}

/** A part of a tail whose records were consumed. */
export interface TakenRange {
  readonly recordCount: number;
  /** The traces that the records belong to. */
  readonly traceIds: readonly TraceId[];
  /** Lines that are no records and were skipped. */
  readonly rejects: readonly Reject[];
  /** The position after this part; `undefined` if the last one remains valid. */
  readonly position: TailPosition | undefined;
}

/**
 * Passes the records of a tail to a consumer while they are written, in a batch for each trace; reads on when the consumer has resolved. Resolves when the tail ends: after its `finish()`, or when
 * the signal aborts.
 * @param onTaken is called and awaited when the consumer has resolved
 * @throws what the consumer throws; SourceError if the file cannot be read
 */
export async function feedTail(
  tail: JsonlTail,
  consumer: RecordConsumer,
  signal: AbortSignal,
  onTaken: (taken: TakenRange) => void | Promise<void>,
): Promise<void> {
  for await (const { lines, rejects: others, position } of tail.chunks(signal)) {
    const { records, rejects } = readRecords(lines);
    const delivery = joinBatches({ batches: batchesOf(records), passthrough: [] });
    if (records.length > 0) await consumer.consume(delivery);
    const traceIds = delivery.batches.map(({ traceId }) => traceId);
    await onTaken({ recordCount: records.length, traceIds, rejects: [...others, ...rejects], position });
  }
}
