import type { Clock, Timer } from './clock.js';
import type { DataFolder } from './data-folder.js';
import { reasonOf } from './errors.js';
import type { DiskSpace } from './folders.js';
import { type Guard, RefusalPeriod, type Shortage } from './guard.js';
import type { Health, HealthState } from './health.js';
import type { Component } from './lifecycle.js';
import type { Logger } from './logger.js';
import { readableBytes } from './text.js';

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
const SAMPLE_MS = 1_000;
/**
 * A guard that refuses accepts again when there is room for the largest body it refused: otherwise it would alternate
 * with every body larger than the rest. That room is at least, and at most, this part of the reserve or the
 * limit: a body that never fits must not block all others.
 */
const ACCEPT_RESERVE = { least: 0.25, most: 1 };
const ACCEPT_LIMIT = { least: 0.05, most: 0.25 };
const RETRY_AFTER_MS = 5_000;

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
      began: 'the disk takes no more: nothing is taken in until it does',
      ended: 'the disk takes more again: records are taken in',
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
    return { message, retryAfterMs: RETRY_AFTER_MS };
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
    this.timer = this.deps.clock.after(SAMPLE_MS, () => void this.look());
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
        return `The data folder ${path} cannot be used (${this.goneReason}): bring it back; nothing is taken until then.`;
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
