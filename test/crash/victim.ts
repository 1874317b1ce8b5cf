import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { canConnect } from '../tool/can-connect.js';

/** A server that is killed and started again, always by the same command line. */
export interface VictimCommand {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** It is ready when this port of the loopback address takes connections. */
  readonly port: number;
}

const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 3;
const LAST_WORDS_MS = 100;
const MAX_LOG_CHARS = 200_000;

/** One life of the server after the other. */
export class Victim {
  /** From the start of the process to its being ready, in milliseconds, of each life that got so far. */
  readonly recoveriesMs: number[] = [];
  /** What it said on standard error, the end of it. */
  log = '';
  private child: ChildProcess | undefined;
  private startedMs = 0;
  private isReady = false;

  constructor(readonly command: VictimCommand) {}

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  get isAlive(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** `null` while it runs, and after a signal. */
  get exitCode(): number | null {
    return this.child?.exitCode ?? null;
  }

  /** Starts the process; it is not ready yet. */
  spawn(): void {
    const { command, args, env } = this.command;
    this.startedMs = performance.now();
    this.isReady = false;
    const child = spawn(command, args, {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      this.log = (this.log + chunk.toString()).slice(-MAX_LOG_CHARS);
    });
    this.child = child;
  }

  /** What the process sends over its channel, where something in it does. */
  onMessage(listener: (message: unknown) => void): void {
    this.child?.on('message', listener);
  }

  /** @throws Error when it ends before it is ready, or takes too long. */
  async ready(): Promise<void> {
    if (this.isReady) return;
    for (;;) {
      if (await canConnect(this.command.port)) break;
      if (!this.isAlive) {
        // What it said last may come after its end.
        await pause(LAST_WORDS_MS);
        throw new Error(`${this.command.name} ended by itself with ${this.child?.exitCode}: ${this.log.slice(-2000)}`);
      }
      if (performance.now() - this.startedMs > READY_TIMEOUT_MS) throw new Error(`${this.command.name} is not ready`);
      await pause(POLL_MS);
    }
    this.isReady = true;
    this.recoveriesMs.push(performance.now() - this.startedMs);
  }

  /** Sends a signal and goes on. */
  signal(signal: NodeJS.Signals): void {
    this.child?.kill(signal);
  }

  /** Sends a signal and waits until the process is gone. Returns its exit code, `null` after a signal. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const { child } = this;
    if (child === undefined) return null;
    if (this.isAlive) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill(signal);
      await gone;
    }
    return child.exitCode;
  }
}
