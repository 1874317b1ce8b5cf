import { type ChildProcess, spawn } from 'node:child_process';
import { freePorts } from '../crash/free-ports.js';
import type { BridgeProcess } from './bridge-process.js';
import { canConnect } from './can-connect.js';
import { subscribe } from './subscribe.js';
import { until } from './until.js';

const script = new URL('../fixture/clients/receiver.py', import.meta.url).pathname;

/** What `receiver.py` says of a delivery. */
export interface VerifiedDelivery {
  /** Whether `Authorization` is right. */
  readonly sig_dbt: boolean;
  /** Whether the signature of Standard Webhooks is; `null` where there is none. */
  readonly sig_standard: boolean | null;
  /** What of the payload is missing, or of another type. */
  readonly bad: readonly string[];
  readonly event: string;
  readonly eventId: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A receiver in Python that verifies as published ones do, subscribed to a bridge. */
export class PythonReceiver {
  /** @param mode what it answers: a status, or `slow`, `gone`, `flaky` */
  static async open(bridge: BridgeProcess, token: string, mode = '200'): Promise<PythonReceiver> {
    const [port = 0] = await freePorts(1, 26_000);
    // It is given the secret when it is started, so the subscription comes first.
    const { id, secret } = await subscribe(bridge, token, 'python', `http://127.0.0.1:${port}/`);
    const child = spawn('python3', [script, String(port), secret, mode], { stdio: ['ignore', 'pipe', 'inherit'] });
    const receiver = new PythonReceiver(id, child);
    await until('the receiver', () => canConnect(port));
    return receiver;
  }

  private said = '';

  private constructor(
    /** Of the subscription. */
    readonly subscriptionId: string,
    private readonly child: ChildProcess,
  ) {
    child.stdout?.on('data', (chunk: Buffer) => {
      this.said += chunk.toString();
    });
  }

  /** What came so far, in that order. */
  get deliveries(): readonly VerifiedDelivery[] {
    const lines = this.said.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as VerifiedDelivery);
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await ended;
  }
}
