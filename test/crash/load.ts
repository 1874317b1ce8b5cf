import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Signal } from '../../src/record/record-batch.js';
import type { PlannedRun } from './run-plan.js';
import type { LoadBody } from './run-template.js';

/** How the load is sent. */
export interface LoadOptions {
  /** Where to; where several servers take it, the next one for each request. */
  readonly port: number | (() => number);
  /** Runs that are sent at the same time, each over a connection of its own. */
  readonly engines: number;
  /** From one body of a run to the next, in milliseconds, the answer included; where that took longer, the next comes at once. */
  gapMs(body: LoadBody, run: PlannedRun): number;
  /** What is sent of each run; both where left out. */
  readonly signals?: readonly Signal[];
  /** The longest pause before another try, in milliseconds, also where a server asks for a longer one; default 160. */
  readonly maxRetryMs?: number;
  /** Told of each body that was answered 200. */
  onAcknowledged(run: PlannedRun, body: LoadBody): void;
}

/** Before the second try of a body, in milliseconds; twice as long before each further one. */
const RETRY_MS = 20;
const MAX_RETRY_MS = 160;
const ANSWER_TIMEOUT_MS = 15_000;

/**
 * Engines that send one run after the other, as an OTLP client with a queue of its own does: a body that was not answered
 * 200 is sent again, the same and in order, until it is.
 */
export class Load {
  /** Runs of which at least one body was acknowledged and at least one was not. */
  readonly inProgress = new Set<PlannedRun>();
  /** Bodies that were answered 200. */
  acknowledgedCount = 0;
  /** Bodies that were sent again. */
  resentCount = 0;
  /** What no retry mends: an answer that is neither 200 nor one to try again after. */
  readonly refusals: string[] = [];
  private readonly agent: Agent;
  private isEnding = false;
  private sending: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly plan: { next(): PlannedRun },
    private readonly options: LoadOptions,
  ) {
    this.agent = new Agent({ keepAlive: true, maxSockets: options.engines });
  }

  start(): void {
    this.sending = Promise.all(Array.from({ length: this.options.engines }, () => this.engine()));
  }

  /** Begins no more runs, and resolves when those that were begun are sent to their end. */
  async finish(): Promise<void> {
    this.isEnding = true;
    await this.sending;
    this.agent.destroy();
  }

  private async engine(): Promise<void> {
    const { signals = ['traces', 'logs'] } = this.options;
    while (!this.isEnding) {
      const run = this.plan.next();
      for (const body of run.template.bodies(run.runNumber, run.copies)) {
        if (!signals.includes(body.signal)) continue;
        const sentMs = performance.now();
        await this.sendUntilTaken(body);
        this.acknowledgedCount += 1;
        this.options.onAcknowledged(run, body);
        this.inProgress.add(run);
        await pause(Math.max(0, sentMs + this.options.gapMs(body, run) - performance.now()));
      }
      this.inProgress.delete(run);
    }
  }

  private async sendUntilTaken(body: LoadBody): Promise<void> {
    const { maxRetryMs = MAX_RETRY_MS } = this.options;
    for (let pauseMs = RETRY_MS; ; pauseMs *= 2) {
      const { status, retryAfterMs, text } = await this.post(body);
      if (status === 200 && text.length <= 2) return;
      if (status === 200 || (status !== 0 && status !== 429 && status < 502)) {
        this.refusals.push(`${status} ${text}`);
        return;
      }
      this.resentCount += 1;
      await pause(Math.min(Math.max(pauseMs, retryAfterMs), maxRetryMs));
    }
  }

  /** Status 0 where there was no answer. */
  private post({ signal, bytes }: LoadBody): Promise<{ status: number; retryAfterMs: number; text: string }> {
    const { port } = this.options;
    return new Promise((resolve) => {
      const none = () => resolve({ status: 0, retryAfterMs: 0, text: '' });
      const outgoing = request(
        {
          host: '127.0.0.1',
          port: typeof port === 'number' ? port : port(),
          path: `/v1/${signal}`,
          method: 'POST',
          agent: this.agent,
          timeout: ANSWER_TIMEOUT_MS,
          headers: { 'content-type': 'application/x-protobuf', 'content-length': bytes.length },
        },
        (response) => {
          let text = '';
          response.on('data', (chunk: Buffer) => {
            text += chunk.toString('latin1');
          });
          response.on('error', none);
          response.on('end', () => {
            const retryAfterMs = Number(response.headers['retry-after'] ?? 0) * 1000;
            resolve({ status: response.statusCode ?? 0, retryAfterMs, text });
          });
        },
      );
      outgoing.on('timeout', () => outgoing.destroy());
      outgoing.on('error', none);
      outgoing.end(bytes);
    });
  }
}
