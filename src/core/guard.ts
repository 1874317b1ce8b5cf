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

/** Why nothing more is accepted now. */
export interface Shortage {
  /** One sentence for the operator: the shortage, and the setting that changes the limit. */
  readonly message: string;
  /** The time after which the sender should try again, in milliseconds. */
  readonly retryAfterMs: number;
}

/** Decides whether work may be accepted, so that accepted work can be finished. */
export interface Guard {
  /**
   * Checks for a shortage, immediately and from known values.
   * @param bodyBytes announced length of the body; 0 if unknown
   * @returns `undefined` if the body may be read
   */
  findShortage(bodyBytes: number): Shortage | undefined;
  /** Counts a body that was read. @param bodyBytes its length after decompression */
  onBody(bodyBytes: number): void;
}

/** The log messages at the start and end of a period of refusals. */
export interface RefusalWords {
  /** The message at the start, for example `requests are refused: memory is short`. */
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

  /** The number of requests refused since the period began; 0 outside of one. */
  get count(): number {
    return this.isOn ? this.refusedCount : 0;
  }

  /** Begins, ends or continues a period. @param reason one word that stays the same during a shortage; `undefined` without a shortage */
  update(reason: string | undefined, fields: LogFields): void {
    if (reason === this.reason) return;
    if (this.reason !== undefined) this.end(fields);
    this.reason = reason;
    if (reason === undefined) return;
    this.beganAtMs = this.clock.monotonicMs();
    this.refusedCount = 0;
    this.logger.warn({ reason, ...fields }, this.words.began);
  }

  /** Counts a refused request. */
  add(): void {
    this.refusedCount += 1;
  }

  private end(fields: LogFields): void {
    const lastedMs = Math.round(this.clock.monotonicMs() - this.beganAtMs);
    this.logger.info({ reason: this.reason, refusedCount: this.refusedCount, lastedMs, ...fields }, this.words.ended);
  }
}

/** Memory that a decoded body takes for each of its bytes, itself included, as measured: 12 bytes for JSON, 5 for protobuf. */
export const MEMORY_PER_BODY_BYTE = 12;

/**
 * Computes the memory limit for each of three kinds of open state: open record logs, open runs and runs being exported. What is evicted for lack of room and goes on later has to be read again as a
 * whole, so all that are active at a time should fit.
 * @param maxMemoryBytes limit of the program, at least 256 MiB
 * @returns bytes for each kind
 */
export function openPartBytes(maxMemoryBytes: number): number {
  return Math.floor(maxMemoryBytes / 8);
}

/** Bodies are refused from the first part of the limit on, and accepted again below the second. */
const REFUSE_AT = 0.9;
const ACCEPT_AT = 0.8;
/**
 * The largest part of the limit that is not counted because allocators keep it for the next objects. Such memory is reusable but never released completely: if it counted, a process with a low limit
 * that was once busy would refuse forever.
 */
const MAX_REUSABLE_PART = 0.3;
/** A memory measurement is valid for this many milliseconds, and for bodies of this part of the limit. */
const SAMPLE_MS = 100;
const SAMPLE_PART = 1 / 32;
/** The interval at which a refusing guard measures again, in milliseconds. */
const RECOVERY_MS = 500;
/** The shortest time between two forced garbage collections, in milliseconds; each stops the program. */
const COLLECT_MS = 5_000;
const RETRY_AFTER_MS = 2_000;

/** The memory of the process, in bytes. */
export interface MemoryUsage {
  /** Resident memory without what allocators keep for the next objects. */
  readonly usedBytes: number;
  readonly residentBytes: number;
  readonly limitBytes: number;
}

/** Dependencies of the memory guard. */
export interface MemoryGuardDeps {
  readonly machine: Machine;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where the guard registers its check. */
  readonly health: Health;
}

/**
 * Keeps the process below a memory limit: near it, bodies are refused before they are read until memory is free again. Under load most of the memory is garbage, so garbage is collected before
 * anything is refused.
 */
export class MemoryGuard implements Guard, Component {
  readonly name = 'memory';
  private readonly period: RefusalPeriod;
  private residentBytes = 0;
  /** Resident memory that is not objects, as measured at the start. */
  private fixedBytes = 0;
  /** Free memory that allocators kept at the last garbage collection. */
  private reusableBytes = 0;
  private sampledAtMs = Number.NEGATIVE_INFINITY;
  private collectedAtMs = Number.NEGATIVE_INFINITY;
  /** Memory that bodies accepted since the last measurement may take, in bytes. */
  private expectedBytes = 0;
  private timer: Timer | undefined;
  private readonly collectors: (() => void)[] = [];

  /** @param maxBytes the limit of the process (`--max-memory`) */
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

  /** Adds a collector for another thread, which has its own heap. @param collect makes the thread collect garbage soon */
  collectsWith(collect: () => void): void {
    this.collectors.push(collect);
  }

  /** The memory usage, at most 100 ms old. */
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

/** The memory of the machine and of this process; passed in so that tests can set it. */
export interface Machine {
  /** The machine's memory in bytes, or the limit of its control group (of a container) if that is less. */
  readonly memoryBytes: number;
  /** The heap limit of Node in bytes, beyond which the process is aborted; set by Node's `--max-old-space-size`. */
  readonly maxHeapBytes: number;
  /** Returns the resident memory of the process in bytes; costs about 10 µs. */
  residentBytes(): number;
  /** Returns the heap of the main thread with its external memory, in bytes. */
  objectBytes(): number;
  /** Collects garbage; stops the process for about 100 ms a gigabyte. */
  collectGarbage(): void;
}

/** The machine that the process runs on. */
export const systemMachine: Machine = {
  // Without a limit Node reports 2^64.
  memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
  maxHeapBytes: getHeapStatistics().heap_size_limit,
  residentBytes,
  objectBytes: () => {
    // Unlike `process.memoryUsage()`, this opens no file.
    const { used_heap_size: heapBytes, external_memory: externalBytes } = getHeapStatistics();
    return heapBytes + externalBytes;
  },
  collectGarbage: () => findCollector()(),
};

let lastResidentBytes = 0;

/** Returns the resident memory, or the last known value while Node cannot open the file that it reads for it, for lack of descriptors. */
function residentBytes(): number {
  try {
    lastResidentBytes = process.memoryUsage.rss();
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
  }
  return lastResidentBytes;
}

/** Returns V8's garbage collector, which Node exposes only with a flag; the flag may be set at run time. */
function findCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  return typeof collect === 'function' ? () => void collect() : () => {};
}

/**
 * Sets how far V8 lets its heap grow before it collects. V8 reads these flags each time it is about to grow.
 * While a program starts, all modules survive, so the young generation doubles and does not shrink while nothing is allocated: 5 MiB of an idle process, 13 MiB with exports. Keeping it small during
 * the start costs 10 ms more CPU.
 */
export const heapGrowth = {
  /** Keeps the young generation small, for the start. */
  hold(): void {
    setFlagsFromString('--semi-space-growth-factor=1');
  },
  /** Keeps the young generation small and collects after little growth, for a process that may take little memory. */
  saveMemory(): void {
    setFlagsFromString('--optimize-for-size');
  },
  /** Allows a large young generation, and a heap of four times what is in use until V8 marks it; for processes that allocate much for long. */
  release(): void {
    setFlagsFromString('--semi-space-growth-factor=2');
    setFlagsFromString('--heap-growing-percent=300');
  },
};

/** How much of the disk the data folder may use. */
export interface DiskGuardConfig {
  /** The path of the data folder, as shown in messages. */
  readonly path: string;
  /** The limit for the data folder in bytes; `null` for none. */
  readonly maxBytes: number | null;
  /** Free space that is reserved on its file system, in bytes; `null` for the smaller of 1 GiB and 5 % of the file system. */
  readonly reserveBytes: number | null;
}

/** Dependencies of the disk guard. */
export interface DiskGuardDeps {
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where the guard registers its check. */
  readonly health: Health;
}

/** Size and usage of the disk, in bytes. */
export interface DiskUsage extends DiskSpace {
  readonly reserveBytes: number;
  /** The size of the data folder; `undefined` if it has no limit or was not counted yet. */
  readonly usedBytes: number | undefined;
  /** The limit of the data folder; `undefined` if it has none. */
  readonly limitBytes: number | undefined;
}

/** Disk space that a body takes for each of its bytes, as measured: 2.6 in the record log, and its part of the Parquet file. */
const DISK_PER_BODY_BYTE = 3;
const GIB = 2 ** 30;
const DEFAULT_RESERVE_PART = 0.05;
/** The interval at which the file system is asked for its free space, in milliseconds. */
const DISK_SAMPLE_MS = 1_000;
/**
 * A refusing guard accepts again when there is room for the largest body that it refused; otherwise it would alternate with every body that is larger than the remaining room. That room is at least
 * `least` and at most `most` of the reserve or limit, so that a body that never fits does not block all others.
 */
const ACCEPT_RESERVE = { least: 0.25, most: 1 };
const ACCEPT_LIMIT = { least: 0.05, most: 0.25 };
const DISK_RETRY_AFTER_MS = 5_000;

/** Why bodies are refused: the folder is gone, the file system is nearly full, or the folder has reached its limit. */
type Trouble = 'data folder' | 'disk reserve' | 'disk limit';

/**
 * Refuses bodies before they are read while the data folder is gone, the disk's reserve would be used, or the folder has reached its limit. Work on accepted records (Parquet, cursors) may use the
 * reserve.
 */
export class DiskGuard implements Guard, Component {
  readonly name = 'disk';
  private readonly period: RefusalPeriod;
  private readonly size: SizeEstimate | undefined;
  private space: DiskSpace = { totalBytes: 0, freeBytes: 0 };
  private goneReason: string | undefined;
  private trouble: Trouble | undefined;
  /** Bytes that bodies accepted since the last measurement, and in the interval before it, may still write. */
  private expectedBytes = 0;
  private earlierBytes = 0;
  /** Bytes that the largest refused body of this period would have written. */
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

  /** The disk usage at the last measurement, at most a second ago. */
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

  /** Measures the file system now and then at an interval. */
  private async look(): Promise<void> {
    const expectedBytes = this.expectedBytes;
    try {
      const space = await this.deps.folder.readSpace();
      // Bodies accepted before the last measurement are on the disk by now.
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

  /** Returns the bytes that have to be free for a body. @param ofBytes the limit or reserve for which bodies are refused; 0 while none are */
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

  /** Returns one sentence on what is wrong and what helps; `undefined` without trouble. */
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

/** The size is counted again after this many milliseconds, or this many times what counting takes if that is longer. */
const REFRESH_MS = 60_000;
const REFRESH_FACTOR = 100;
/** The same while the folder is over its limit, so that removed files are noticed soon. */
const URGENT_REFRESH_MS = 2_000;
const URGENT_REFRESH_FACTOR = 10;

/** Estimates the size of a folder: counts it in the background now and then, and adds what was written since. */
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

  /** The estimate in bytes; `undefined` until the first count has ended. */
  get bytes(): number | undefined {
    return this.countedBytes === undefined ? undefined : this.countedBytes + this.writtenBytes;
  }

  /** Adds bytes that were, or are about to be, written. */
  add(bytes: number): void {
    this.writtenBytes += bytes;
  }

  /** Starts a count in the background if one is due. @param isUrgent makes it due sooner */
  refresh(isUrgent: boolean): void {
    // Without writes there is nothing to count again.
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
