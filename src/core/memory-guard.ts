import { totalmem } from 'node:os';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock, Timer } from './clock.js';
import { type Guard, RefusalPeriod, type Shortage } from './guard.js';
import type { Health, HealthState } from './health.js';
import type { Component } from './lifecycle.js';
import type { Logger } from './logger.js';
import { readableBytes } from './text.js';

/** What a decoded body takes for each of its bytes, measured, its own included: JSON 12, protobuf 5. */
export const MEMORY_PER_BODY_BYTE = 12;
/** Nothing is taken beyond this part of the limit, and taken again below the second. */
const REFUSE_AT = 0.9;
const ACCEPT_AT = 0.8;
/**
 * Memory that allocators keep for the next objects is reusable, and is never released completely: at most this part of the limit is not
 * counted. Without it a process that was busy once would refuse forever if the limit is low.
 */
const MAX_REUSABLE_PART = 1 / 3;
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
      ended: 'there is memory again: requests are taken',
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
  residentBytes: () => process.memoryUsage.rss(),
  objectBytes: () => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  },
  collectGarbage: () => findCollector()(),
};

/** Node offers its collector under a flag alone, which may be set while it runs. */
function findCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  return typeof collect === 'function' ? () => void collect() : () => {};
}

/**
 * Whether V8 lets the young generation of its heap grow. It doubles while a start loads modules, since all of them
 * survive, and gives nothing back for as long as nothing is allocated: 5 MiB of an idle process, 13 MiB with exports.
 * Held small meanwhile, a start takes 10 ms of CPU more. V8 reads the flag each time it would grow.
 */
export const youngGeneration = {
  hold(): void {
    setFlagsFromString('--semi-space-growth-factor=1');
  },
  /** For a process that may take little memory: the young generation stays small, and garbage is collected when the heap has grown by a little. */
  saveMemory(): void {
    setFlagsFromString('--optimize-for-size');
  },
  /** Back to V8's default: what allocates much for long is faster with a large one. */
  release(): void {
    setFlagsFromString('--semi-space-growth-factor=2');
  },
};
