import { totalmem } from 'node:os';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock, Timer } from './clock.js';
import type { DataFolder } from './data-folder.js';
import { errorCode, reasonOf } from './errors.js';
import type { DiskSpace } from './folders.js';
import type { Health, HealthState } from './health.js';
import type { Component } from './lifecycle.js';
import type { LogFields, Logger } from './logger.js';
import { readableBytes } from './text.js';

/** Why nothing more is accepted at the moment. */
export interface Shortage {
  /** One sentence for the operator: the shortage, and the setting that changes the limit. */
  readonly message: string;
  /** When to come back, in milliseconds. */
  readonly retryAfterMs: number;
}

/** Is asked before work is taken on, so that what was taken on can be finished. */
export interface Guard {
  /**
   * Whether there is room for a body; answers immediately from known values.
   * @param bodyBytes announced length of the body; 0 if unknown.
   * @returns `undefined` if it may be read.
   */
  findShortage(bodyBytes: number): Shortage | undefined;
  /** Counts a body that was read, in bytes after inflating. */
  onBody(bodyBytes: number): void;
}

/** Log messages of a period of refusals. */
export interface RefusalWords {
  /** For example `requests are refused: memory is short`. */
  readonly began: string;
  readonly ended: string;
}

/** A period in which requests are refused: logged once at its start and once at its end, however many are refused. */
export class RefusalPeriod {
  private reason: string | undefined;
  private beganAtMs = 0;
  private refusedCount = 0;

  constructor(
    private readonly words: RefusalWords,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Whether requests are refused now. */
  get isOn(): boolean {
    return this.reason !== undefined;
  }

  /** How many were refused since it began; 0 when it is over. */
  get count(): number {
    return this.isOn ? this.refusedCount : 0;
  }

  /** @param reason what is short, in one word that stays the same while it lasts; `undefined` when nothing is. */
  update(reason: string | undefined, fields: LogFields): void {
    if (reason === this.reason) return;
    if (this.reason !== undefined) this.end(fields);
    this.reason = reason;
    if (reason === undefined) return;
    this.beganAtMs = this.clock.monotonicMs();
    this.refusedCount = 0;
    this.logger.warn({ reason, ...fields }, this.words.began);
  }

  /** Counts a request that was refused. */
  add(): void {
    this.refusedCount += 1;
  }

  private end(fields: LogFields): void {
    const lastedMs = Math.round(this.clock.monotonicMs() - this.beganAtMs);
    this.logger.info({ reason: this.reason, refusedCount: this.refusedCount, lastedMs, ...fields }, this.words.ended);
  }
}

/** What a decoded body takes for each of its bytes, measured, its own included: JSON 12, protobuf 5. */
export const MEMORY_PER_BODY_BYTE = 12;

/**
 * What may stay in memory of what is being written, in bytes: of open record logs, of open runs, and of runs that are exported, so
 * much each. What is closed for want of room and goes on is read again as a whole, so all that go on at a time should have room.
 * @param maxMemoryBytes of the program, at least 256 MiB
 */
export function openPartBytes(maxMemoryBytes: number): number {
  return Math.floor(maxMemoryBytes / 8);
}

/** Nothing is taken beyond this part of the limit, and taken again below the second. */
const REFUSE_AT = 0.9;
const ACCEPT_AT = 0.8;
/**
 * Memory that allocators keep for the next objects is reusable, and is never released completely: at most this part of the limit is not
 * counted. Without it a process that was busy once would refuse forever if the limit is low.
 */
const MAX_REUSABLE_PART = 0.3;
/** A measurement of memory is valid for this long, in milliseconds, and for this part of the limit in bodies. */
const SAMPLE_MS = 100;
const SAMPLE_PART = 1 / 32;
/** How often a guard that refuses looks for room, in milliseconds. */
const RECOVERY_MS = 500;
/** The program stands still while garbage is collected, so at most this often, in milliseconds. */
const COLLECT_MS = 5_000;
const RETRY_AFTER_MS = 2_000;

/** What the process takes, and may take, in bytes. */
export interface MemoryUsage {
  /** Less what allocators keep for the next objects. */
  readonly usedBytes: number;
  readonly residentBytes: number;
  readonly limitBytes: number;
}

/** What the memory guard works with. */
export interface MemoryGuardDeps {
  readonly machine: Machine;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Gets the guard's own check. */
  readonly health: Health;
}

/**
 * Keeps the process below a limit: near it bodies are refused before they are read, until there is room. What the process
 * takes is mostly garbage under load, so garbage is collected before anything is refused.
 */
export class MemoryGuard implements Guard, Component {
  readonly name = 'memory';
  private readonly period: RefusalPeriod;
  private residentBytes = 0;
  /** What the process takes apart from its objects. */
  private fixedBytes = 0;
  /** What allocators held for the next objects when garbage was last collected. */
  private reusableBytes = 0;
  private sampledAtMs = Number.NEGATIVE_INFINITY;
  private collectedAtMs = Number.NEGATIVE_INFINITY;
  /** What bodies taken since the last look may add, in bytes. */
  private expectedBytes = 0;
  private timer: Timer | undefined;
  private readonly collectors: (() => void)[] = [];

  /** @param maxBytes what the process may take, in bytes (`--max-memory`). */
  constructor(
    private readonly maxBytes: number,
    private readonly deps: MemoryGuardDeps,
  ) {
    const words = {
      began: 'memory is short: requests are answered 503 until there is room; max-memory sets the limit',
      ended: 'there is memory again: requests are accepted',
    };
    this.period = new RefusalPeriod(words, deps.clock, deps.logger);
    deps.health.register(this.name, () => this.check());
  }

  /** Other threads have memory of their own. @param collect makes one of them free what nothing refers to any more, soon */
  collectsWith(collect: () => void): void {
    this.collectors.push(collect);
  }

  /** As it was at most a tenth of a second ago. */
  get usage(): MemoryUsage {
    if (this.deps.clock.monotonicMs() - this.sampledAtMs >= SAMPLE_MS) this.look();
    const { usedBytes, residentBytes, maxBytes } = this;
    return { usedBytes, residentBytes, limitBytes: maxBytes };
  }

  async start(): Promise<void> {
    const { machine } = this.deps;
    this.fixedBytes = machine.residentBytes() - machine.objectBytes();
    this.look();
  }

  async shutdown(_deadline: AbortSignal): Promise<void> {
    this.timer?.cancel();
  }

  findShortage(bodyBytes: number): Shortage | undefined {
    const isStale = this.deps.clock.monotonicMs() - this.sampledAtMs >= SAMPLE_MS;
    const expectedBytes = this.expectedBytes + bodyBytes * MEMORY_PER_BODY_BYTE;
    if (isStale || expectedBytes > this.maxBytes * SAMPLE_PART) this.look();
    if (!this.period.isOn) return undefined;
    this.period.add();
    return { message: this.message(), retryAfterMs: RETRY_AFTER_MS };
  }

  onBody(bodyBytes: number): void {
    this.expectedBytes += bodyBytes * MEMORY_PER_BODY_BYTE;
  }

  private look(): void {
    this.sample();
    if (this.isShort()) this.collect();
    const isShort = this.isShort();
    this.period.update(isShort ? 'memory' : undefined, { usedBytes: this.usedBytes, maxMemoryBytes: this.maxBytes });
    this.timer?.cancel();
    if (isShort) this.timer = this.deps.clock.after(RECOVERY_MS, () => this.look());
  }

  private sample(): void {
    this.residentBytes = this.deps.machine.residentBytes();
    this.sampledAtMs = this.deps.clock.monotonicMs();
    this.expectedBytes = 0;
  }

  private collect(): void {
    if (this.deps.clock.monotonicMs() - this.collectedAtMs < COLLECT_MS) return;
    for (const collect of this.collectors) collect();
    this.deps.machine.collectGarbage();
    this.collectedAtMs = this.deps.clock.monotonicMs();
    this.sample();
    const unusedBytes = this.residentBytes - this.fixedBytes - this.deps.machine.objectBytes();
    this.reusableBytes = Math.min(Math.max(0, unusedBytes), this.maxBytes * MAX_REUSABLE_PART);
  }

  private get usedBytes(): number {
    return Math.max(0, this.residentBytes - this.reusableBytes);
  }

  private isShort(): boolean {
    return this.usedBytes >= this.maxBytes * (this.period.isOn ? ACCEPT_AT : REFUSE_AT);
  }

  private check(): HealthState {
    const { usage } = this;
    const details = { ...usage, freeBytes: Math.max(0, usage.limitBytes - usage.usedBytes) };
    if (!this.period.isOn) return { ready: true, details };
    return { ready: false, reason: this.message(), details: { ...details, refusedCount: this.period.count } };
  }

  private message(): string {
    const used = `${readableBytes(this.usedBytes)} of ${readableBytes(this.maxBytes)}`;
    return `run-bridge is short of memory (${used} are taken): send the request again shortly; --max-memory sets the limit.`;
  }
}

/** The memory of the machine and of this process, passed in so that tests decide what is left. */
export interface Machine {
  /** The machine's memory in bytes, or what its control group (a container's limit) may take where that is less. */
  readonly memoryBytes: number;
  /** What Node's own heap may take at most, in bytes; beyond it the process ends. `--max-old-space-size` of Node sets it. */
  readonly maxHeapBytes: number;
  /** What the process takes now, in bytes; costs some 10 µs. */
  residentBytes(): number;
  /** What the objects of the main thread take now, with what they hold outside of the heap, in bytes. */
  objectBytes(): number;
  /** Frees what nothing refers to any more; the process stands still for it, for about 100 ms a gigabyte. */
  collectGarbage(): void;
}

/** The machine that the process runs on. */
export const systemMachine: Machine = {
  // Without a limit Node reports 2^64.
  memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
  maxHeapBytes: getHeapStatistics().heap_size_limit,
  residentBytes,
  objectBytes: () => {
    // Unlike `process.memoryUsage()` it opens no file for that.
    const { used_heap_size: heapBytes, external_memory: externalBytes } = getHeapStatistics();
    return heapBytes + externalBytes;
  },
  collectGarbage: () => findCollector()(),
};

let lastResidentBytes = 0;

/** Node reads a file for it, which it cannot open while the process has no descriptor left: then it is what it was. */
function residentBytes(): number {
  try {
    lastResidentBytes = process.memoryUsage.rss();
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
  }
  return lastResidentBytes;
}

/** Node offers its collector under a flag alone, which may be set while it runs. */
function findCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  return typeof collect === 'function' ? () => void collect() : () => {};
}

/**
 * How far V8 lets its heap grow before it collects. The young generation doubles while a start loads modules, since all of them
 * survive, and gives nothing back for as long as nothing is allocated: 5 MiB of an idle process, 13 MiB with exports.
 * Held small meanwhile, a start takes 10 ms of CPU more. V8 reads the flags each time it would grow.
 */
export const heapGrowth = {
  hold(): void {
    setFlagsFromString('--semi-space-growth-factor=1');
  },
  /** For a process that may take little memory: the young generation stays small, and garbage is collected when the heap has grown by a little. */
  saveMemory(): void {
    setFlagsFromString('--optimize-for-size');
  },
  /** For what allocates much for long: a large young generation, and the rest grows to four times what is in use until V8 marks it. */
  release(): void {
    setFlagsFromString('--semi-space-growth-factor=2');
    setFlagsFromString('--heap-growing-percent=300');
  },
};

/** How much of the disk the data folder may use. */
export interface DiskGuardConfig {
  /** The data folder, as it is named in messages. */
  readonly path: string;
  /** What the data folder may hold, in bytes; `null` for no limit. */
  readonly maxBytes: number | null;
  /** Free space that is reserved on its file system, in bytes; `null` for the smaller of 1 GiB and 5 % of the file system. */
  readonly reserveBytes: number | null;
}

/** What the disk guard works with. */
export interface DiskGuardDeps {
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Gets the guard's own check. */
  readonly health: Health;
}

/** What there is of the disk and what of it is taken, in bytes. */
export interface DiskUsage extends DiskSpace {
  readonly reserveBytes: number;
  /** What the data folder holds; `undefined` where it has no limit, or was not counted yet. */
  readonly usedBytes: number | undefined;
  /** What it may hold; `undefined` for no limit. */
  readonly limitBytes: number | undefined;
}

/** What a body takes on disk for each of its bytes, measured: 2.6 in the record log, and its part of the Parquet. */
const DISK_PER_BODY_BYTE = 3;
const GIB = 2 ** 30;
const DEFAULT_RESERVE_PART = 0.05;
/** How often the file system is asked for its room, in milliseconds. */
const DISK_SAMPLE_MS = 1_000;
/**
 * A guard that refuses accepts again when there is room for the largest body it refused: otherwise it would alternate
 * with every body larger than the rest. That room is at least, and at most, this part of the reserve or the
 * limit: a body that never fits must not block all others.
 */
const ACCEPT_RESERVE = { least: 0.25, most: 1 };
const ACCEPT_LIMIT = { least: 0.05, most: 0.25 };
const DISK_RETRY_AFTER_MS = 5_000;

/** The problem: the folder is gone, the file system is nearly full, or the folder has reached its limit. */
type Trouble = 'data folder' | 'disk reserve' | 'disk limit';

/**
 * Refuses bodies before they are read while the data folder is gone, the disk's reserve would be touched or the folder
 * has reached its limit. Work on accepted records (Parquet, cursors) uses the reserve.
 */
export class DiskGuard implements Guard, Component {
  readonly name = 'disk';
  private readonly period: RefusalPeriod;
  private readonly size: SizeEstimate | undefined;
  private space: DiskSpace = { totalBytes: 0, freeBytes: 0 };
  private goneReason: string | undefined;
  private trouble: Trouble | undefined;
  /** What bodies taken since the last look, and in the time before it, may still write, in bytes. */
  private expectedBytes = 0;
  private earlierBytes = 0;
  /** What the largest body that was refused since refusing began would have written, in bytes. */
  private wantedBytes = 0;
  private timer: Timer | undefined;
  private isStopped = false;

  constructor(
    private readonly config: DiskGuardConfig,
    private readonly deps: DiskGuardDeps,
  ) {
    const words = {
      began: 'the data folder has no room for records: requests are answered 503 until it has',
      ended: 'the data folder has room again: requests are accepted',
    };
    this.period = new RefusalPeriod(words, deps.clock, deps.logger);
    if (config.maxBytes !== null) this.size = new SizeEstimate(deps.folder, deps.clock);
    deps.health.register(this.name, () => this.check());
  }

  /** As it was at the last look, at most a second ago. */
  get usage(): DiskUsage {
    const { freeBytes, totalBytes } = this.space;
    const limit = { usedBytes: this.size?.bytes, limitBytes: this.config.maxBytes ?? undefined };
    return { freeBytes, totalBytes, reserveBytes: this.reserveBytes, ...limit };
  }

  async start(): Promise<void> {
    await this.look();
  }

  async shutdown(_deadline: AbortSignal): Promise<void> {
    this.isStopped = true;
    this.timer?.cancel();
    this.size?.stop();
  }

  findShortage(bodyBytes: number): Shortage | undefined {
    const moreBytes = bodyBytes * DISK_PER_BODY_BYTE;
    this.judge(moreBytes);
    const message = this.message();
    if (message === undefined) return undefined;
    this.wantedBytes = Math.max(this.wantedBytes, moreBytes);
    this.period.add();
    return { message, retryAfterMs: DISK_RETRY_AFTER_MS };
  }

  onBody(bodyBytes: number): void {
    this.expectedBytes += bodyBytes * DISK_PER_BODY_BYTE;
    this.size?.add(bodyBytes * DISK_PER_BODY_BYTE);
  }

  /** Asks the file system, and again after a while. */
  private async look(): Promise<void> {
    const expectedBytes = this.expectedBytes;
    try {
      const space = await this.deps.folder.readSpace();
      // What was taken before the last look is on the disk by now.
      [this.space, this.earlierBytes, this.goneReason] = [space, expectedBytes, undefined];
      this.expectedBytes -= expectedBytes;
    } catch (error) {
      this.goneReason = reasonOf(error);
    }
    if (this.isStopped) return;
    this.judge(0);
    this.size?.refresh(this.trouble === 'disk limit');
    this.timer = this.deps.clock.after(DISK_SAMPLE_MS, () => void this.look());
  }

  private judge(moreBytes: number): void {
    const { totalBytes, freeBytes } = this.space;
    this.trouble = this.findTrouble(moreBytes);
    if (this.trouble === undefined) this.wantedBytes = 0;
    const usedBytes = this.size?.bytes;
    this.period.update(this.trouble, { detail: this.message(), freeBytes, totalBytes, usedBytes });
  }

  private findTrouble(moreBytes: number): Trouble | undefined {
    if (this.goneReason !== undefined) return 'data folder';
    return this.isInReserve(moreBytes) ? 'disk reserve' : this.isOverLimit(moreBytes) ? 'disk limit' : undefined;
  }

  private isInReserve(moreBytes: number): boolean {
    const { freeBytes, totalBytes } = this.space;
    if (totalBytes === 0) return false;
    const waitingBytes = this.expectedBytes + this.earlierBytes;
    const isOn = this.trouble === 'disk reserve';
    const roomBytes = this.roomFor(moreBytes, isOn ? this.reserveBytes : 0, ACCEPT_RESERVE);
    return freeBytes - waitingBytes - roomBytes < this.reserveBytes;
  }

  private isOverLimit(moreBytes: number): boolean {
    const { maxBytes } = this.config;
    if (maxBytes === null || this.size?.bytes === undefined) return false;
    const isOn = this.trouble === 'disk limit';
    return this.size.bytes + this.roomFor(moreBytes, isOn ? maxBytes : 0, ACCEPT_LIMIT) >= maxBytes;
  }

  /** What has to be free for so much more. @param ofBytes the limit or reserve that bodies are refused for; 0 while none are. */
  private roomFor(moreBytes: number, ofBytes: number, part: typeof ACCEPT_LIMIT): number {
    return Math.max(moreBytes, part.least * ofBytes, Math.min(this.wantedBytes, part.most * ofBytes));
  }

  private get reserveBytes(): number {
    return this.config.reserveBytes ?? Math.min(GIB, Math.floor(this.space.totalBytes * DEFAULT_RESERVE_PART));
  }

  private check(): HealthState {
    const details = { ...this.usage };
    const reason = this.message();
    if (reason === undefined) return { ready: true, details };
    return { ready: false, reason, details: { ...details, refusedCount: this.period.count } };
  }

  /** One sentence on what is wrong and what helps; `undefined` when nothing is. */
  private message(): string | undefined {
    const { path, maxBytes } = this.config;
    const { freeBytes } = this.space;
    switch (this.trouble) {
      case undefined:
        return undefined;
      case 'data folder':
        return `The data folder ${path} cannot be used (${this.goneReason}): bring it back; nothing is accepted until then.`;
      case 'disk reserve':
        return `The disk of ${path} is nearly full (${readableBytes(freeBytes)} are free, ${readableBytes(this.reserveBytes)} are kept in reserve): free some space; --disk-reserve sets the reserve.`;
      case 'disk limit':
        return `The data folder ${path} has reached its limit (${readableBytes(this.size?.bytes ?? 0)} of ${readableBytes(maxBytes ?? 0)}): remove runs that are no longer needed; --max-disk sets the limit.`;
    }
  }
}

/** The folder's size is computed again after this long, in milliseconds, or this many times its duration. */
const REFRESH_MS = 60_000;
const REFRESH_FACTOR = 100;
/** The same while it is over its limit, so that what was removed is noticed soon. */
const URGENT_REFRESH_MS = 2_000;
const URGENT_REFRESH_FACTOR = 10;

/** How much a folder holds: counted in the background now and then, and what was written since added to it. */
export class SizeEstimate {
  private countedBytes: number | undefined;
  private writtenBytes = 0;
  private dueAtMs = Number.NEGATIVE_INFINITY;
  private urgentAtMs = Number.NEGATIVE_INFINITY;
  private isCounting = false;
  private readonly stopped = new AbortController();

  constructor(
    private readonly folder: DataFolder,
    private readonly clock: Clock,
  ) {}

  /** In bytes; `undefined` until it was counted for the first time. */
  get bytes(): number | undefined {
    return this.countedBytes === undefined ? undefined : this.countedBytes + this.writtenBytes;
  }

  /** Something was, or is about to be, written. */
  add(bytes: number): void {
    this.writtenBytes += bytes;
  }

  /** Counts again in the background when that is due. @param isUrgent sooner than usual. */
  refresh(isUrgent: boolean): void {
    // An idle bridge does not go through its runs again and again.
    if (this.isCounting || (!isUrgent && this.countedBytes !== undefined && this.writtenBytes === 0)) return;
    if (this.clock.monotonicMs() >= (isUrgent ? this.urgentAtMs : this.dueAtMs)) void this.count();
  }

  /** Aborts a running count. */
  stop(): void {
    this.stopped.abort();
  }

  private async count(): Promise<void> {
    this.isCounting = true;
    const beganAtMs = this.clock.monotonicMs();
    const alreadyBytes = this.writtenBytes;
    const bytes = await this.folder.readSize(this.stopped.signal);
    this.isCounting = false;
    if (this.stopped.signal.aborted) return;
    this.countedBytes = bytes;
    // Writes during the count may be counted twice: rather too much than too little.
    this.writtenBytes -= alreadyBytes;
    const endedAtMs = this.clock.monotonicMs();
    const tookMs = endedAtMs - beganAtMs;
    this.dueAtMs = endedAtMs + Math.max(REFRESH_MS, REFRESH_FACTOR * tookMs);
    this.urgentAtMs = endedAtMs + Math.max(URGENT_REFRESH_MS, URGENT_REFRESH_FACTOR * tookMs);
  }
}
