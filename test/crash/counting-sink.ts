import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { runNumberOf, spanKeyOf } from './load-ids.js';
import type { SeededRandom } from './seeded-random.js';
import { type WireField, wireFields } from './wire-fields.js';

/** How the sink treats those who send to it. */
export interface SinkOptions {
  /** How long it takes for an answer, in milliseconds. */
  readonly delayMs: number;
  /** The share of requests that it answers 503 without keeping anything. */
  readonly failureRate: number;
  readonly random: SeededRandom;
}

/** How long what a killed process sent may wait to be read, in milliseconds; less than any start takes. */
const LAST_READ_MS = 80;

/** A destination that counts how often it got each span and log record of the load. */
export class CountingSink {
  static async listen(options: SinkOptions): Promise<CountingSink> {
    const server = http.createServer();
    const sink = new CountingSink(server, options);
    server.on('request', (request, response) => void sink.take(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return sink;
  }

  /** How often each span came, by `spanKey`. */
  readonly spans = new Map<number, number>();
  /** How often each log record came: `<span id> <time>`. */
  readonly logs = new Map<string, number>();
  /** Tells it to answer every request so for the time being. */
  outage: 'none' | '503' | '429' | 'reset' = 'none';
  /** Spans that came again without a kill between: none, if a sender takes an answer for what it is. */
  repeatedInLife = 0;
  /** Of spans that came again after a kill: how many requests before the kill they had come, at most. 1 is the last one. */
  furthestRepeat = 0;
  private arrivals: (() => void)[] = [];
  /** The request in which a span came last. */
  private readonly cameIn = new Map<number, number>();
  private requestNumber = 0;
  /** For each kill, the number of the last request before it. */
  private readonly lastBeforeKill: number[] = [];

  private constructor(
    private readonly server: http.Server,
    private readonly options: SinkOptions,
  ) {}

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Resolves when the next request is here and has no answer yet. */
  nextRequest(): Promise<void> {
    return new Promise((resolve) => this.arrivals.push(resolve));
  }

  /** Told that the sender was killed just now. What it sent last is read a moment later, long before a new one can send. */
  noteKill(): void {
    setTimeout(() => this.lastBeforeKill.push(this.requestNumber), LAST_READ_MS);
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private async take(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    // A sender that was killed: what it sent in part is nothing.
    request.on('error', () => {});
    response.on('error', () => {});
    request.on('end', async () => {
      const { random, failureRate, delayMs } = this.options;
      if (this.outage === 'reset') {
        request.socket.destroy();
        return;
      }
      if (this.outage !== 'none' || random.next() < failureRate) {
        response.writeHead(this.outage === '429' ? 429 : 503, { 'retry-after': '0' }).end();
        return;
      }
      const body = Buffer.concat(chunks);
      const plain = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
      if (request.url?.endsWith('/logs')) this.countLogs(plain);
      else this.countSpans(plain);
      for (const arrived of this.arrivals.splice(0)) arrived();
      await pause(delayMs);
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
    });
  }

  private countSpans(body: Buffer): void {
    this.requestNumber += 1;
    for (const fields of records(body)) {
      const key = keyOf(fields, 1, 2);
      if (key === undefined) continue;
      this.spans.set(key, (this.spans.get(key) ?? 0) + 1);
      const before = this.cameIn.get(key);
      if (before !== undefined) this.noteRepeat(before);
      this.cameIn.set(key, this.requestNumber);
    }
  }

  private noteRepeat(before: number): void {
    const lastInLife = this.lastBeforeKill.find((last) => last >= before);
    if (lastInLife === undefined) this.repeatedInLife += 1;
    else this.furthestRepeat = Math.max(this.furthestRepeat, lastInLife - before + 1);
  }

  private countLogs(body: Buffer): void {
    for (const fields of records(body)) {
      const time = fields.find(({ number }) => number === 1)?.bytes.readBigUInt64LE();
      const spanId = fields.find(({ number }) => number === 10)?.bytes.toString('hex');
      if (keyOf(fields, 9, 10) === undefined) continue;
      const key = `${spanId} ${time}`;
      this.logs.set(key, (this.logs.get(key) ?? 0) + 1);
    }
  }
}

/** Of an export request: request → resource (1) → scope (2) → span or log record (2). */
function* records(body: Buffer): Iterable<readonly WireField[]> {
  for (const resource of wireFields(body)) {
    for (const scope of wireFields(resource.bytes)) {
      if (scope.number !== 2) continue;
      for (const record of wireFields(scope.bytes)) if (record.number === 2) yield [...wireFields(record.bytes)];
    }
  }
}

function keyOf(fields: readonly WireField[], traceIdField: number, spanIdField: number): number | undefined {
  const traceId = fields.find(({ number }) => number === traceIdField)?.bytes;
  const spanId = fields.find(({ number }) => number === spanIdField)?.bytes;
  const runNumber = traceId === undefined ? undefined : runNumberOf(traceId);
  return runNumber === undefined || spanId === undefined ? undefined : spanKeyOf(runNumber, spanId);
}
