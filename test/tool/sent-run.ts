import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SAMPLES } from '../fake/sample-run.js';

/** An answer to a body of telemetry. */
export interface SentAnswer {
  readonly status: number;
  /** What the bridge says; empty after 200. */
  readonly message: string;
  /** In seconds; `null` where it was not said. */
  readonly retryAfter: string | null;
}

/** Spans that a record log lacks, and that it has beyond what was sent. */
interface ComparedSpans {
  readonly missingCount: number;
  readonly addedCount: number;
}

const SAMPLE = 'build-clean';
const sampleLines = readFileSync(join(SAMPLES, SAMPLE, 'otel.jsonl'), 'utf8');
const sampleTraceId: string = JSON.parse(sampleLines.split('\n')[0] ?? '').trace_id;
const folder = join(SAMPLES, SAMPLE, 'otlp');
const sampleBodies = readdirSync(folder)
  .sort()
  .map((file) => ({ signal: file.includes('traces') ? 'traces' : 'logs', bytes: readFileSync(join(folder, file)) }));

/** A sample's run under a trace id of its own, so that as many can be sent as a test needs. */
export class SentRun {
  readonly traceId = randomBytes(16).toString('hex');

  /** Its bodies in the order in which the engine sends them; the signal is the last part of the path. */
  get bodies(): readonly { readonly signal: string; readonly bytes: Buffer<ArrayBuffer> }[] {
    return sampleBodies.map(({ signal, bytes }) => ({ signal, bytes: this.own(bytes) }));
  }

  /** Sends all of it, and does something after each body. Resolves with the answers, in the order of the bodies. */
  async send(
    url: string,
    afterEach: () => void = () => {},
    headers: Readonly<Record<string, string>> = {},
  ): Promise<readonly SentAnswer[]> {
    const answers: SentAnswer[] = [];
    for (const body of this.bodies) {
      answers.push(await this.sendOne(url, body, headers));
      afterEach();
    }
    return answers;
  }

  /** Sends one of its bodies. */
  sendOne(
    url: string,
    { signal, bytes }: SentRun['bodies'][number],
    headers: Readonly<Record<string, string>> = {},
  ): Promise<SentAnswer> {
    return post(`${url}/v1/${signal}`, bytes, headers);
  }

  /** How many spans its record log has less and more than the sample, both 0 when nothing is amiss. */
  compare(runFolder: string): ComparedSpans {
    const path = join(runFolder, 'telemetry.jsonl');
    return this.compareLines(existsSync(path) ? readFileSync(path, 'utf8') : '');
  }

  /** The same of a record log's lines. */
  compareLines(lines: string): ComparedSpans {
    const kept = keysOf(lines);
    const sent = keysOf(sampleLines.replaceAll(sampleTraceId, this.traceId));
    return { missingCount: without(sent, kept).length, addedCount: without(kept, sent).length };
  }

  private own(body: Buffer): Buffer<ArrayBuffer> {
    const copy = Buffer.from(body);
    const sampleId = Buffer.from(sampleTraceId, 'hex');
    const ownId = Buffer.from(this.traceId, 'hex');
    for (let at = copy.indexOf(sampleId); at !== -1; at = copy.indexOf(sampleId, at + 16)) ownId.copy(copy, at);
    return copy;
  }
}

async function post(
  url: string,
  body: Buffer<ArrayBuffer>,
  headers: Readonly<Record<string, string>>,
): Promise<SentAnswer> {
  const all = { 'content-type': 'application/x-protobuf', ...headers };
  const answer = await fetch(url, { method: 'POST', headers: all, body });
  const status = Buffer.from(await answer.arrayBuffer());
  // google.rpc.Status: a code (field 1), then the message (field 2) with its length in one or two bytes.
  const message = status.toString('utf8', (status[3] ?? 0) > 0x7f ? 5 : 4);
  return { status: answer.status, message, retryAfter: answer.headers.get('retry-after') };
}

/** What tells a span's end from any other; the engine writes span starts that OTLP does not carry. */
function keysOf(lines: string): string[] {
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
    .filter((record) => record.record_type === 'SpanEnd')
    .map((record) => `${record.trace_id}:${record.span_id}`);
}

/** The first list without the second, each entry as often as it is there. */
function without(list: readonly string[], other: readonly string[]): string[] {
  const rest = [...other];
  return list.filter((entry) => {
    const at = rest.indexOf(entry);
    if (at !== -1) rest.splice(at, 1);
    return at === -1;
  });
}
