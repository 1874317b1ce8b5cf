import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, expect, it } from 'vitest';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { decodeBody, decodeRequest } from '../fake/decode-at-once.js';
import { type Answer, send } from '../fake/http-client.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { BUDGET, fuzzAgain } from './budget.js';
import { readCorpus } from './corpus.js';
import { type Decoded, decodedBy } from './decoded.js';
import { Dice } from './dice.js';
import { ExpectedLog } from './expected-log.js';
import { Findings } from './findings.js';
import { FuzzBodies, type FuzzBody } from './fuzz-body.js';
import { mutateBytes } from './mutate.js';

/** One body in this many is sent. */
const SHARE = 20;
const CONNECTIONS = 4;
const MAX_BODY_BYTES = 200_000;
/** How often a body is sent again that was answered 503. */
const TRIES = 30;

const json = new JsonCodec();

let bridge: BridgeProcess | undefined;
afterEach(() => bridge?.remove());

/** What goes over the wire, and what has to be answered. */
interface Sending {
  readonly body: FuzzBody;
  readonly bytes: Uint8Array;
  readonly isCompressed: boolean;
  readonly status: number;
  readonly decoded: Decoded;
}

it(`the program answers ${BUDGET.bodyCount / SHARE} bodies as they deserve, lives on, and keeps what it accepted`, async () => {
  const bodies = new FuzzBodies(BUDGET.seed, readCorpus());
  bridge = await BridgeProcess.start({ args: ['--max-body-bytes', String(MAX_BODY_BYTES), '--log-level', 'error'] });
  const port = Number(new URL(bridge.otlpUrl).port);
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const findings = new Findings();
  const expected = new ExpectedLog();
  const statuses: Record<number, number> = {};
  let next = BUDGET.first;
  const sendAll = async () => {
    while (next < BUDGET.first + BUDGET.bodyCount) {
      const number = next;
      next += SHARE;
      const sending = sendingOf(bodies.at(number), new Dice(BUDGET.seed + 1, number));
      const { status } = await post(port, agent, sending);
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === 200) expected.add(sending.decoded);
      if (status !== sending.status) {
        const { signal, encoding, bytes } = sending.body;
        const again = fuzzAgain(number, 1);
        const what = `answered ${status}, not ${sending.status}`;
        findings.add(what, () => `${again}\n${signal} ${encoding}: ${bytes.toString('hex')}`);
      }
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, sendAll));
  agent.destroy();
  const health = await fetch(`${bridge.otlpUrl}/healthz`);
  expect(health.status).toBe(200);
  const status = readFileSync(`/proc/${bridge.child.pid}/status`, 'utf8');
  console.log(`statuses ${JSON.stringify(statuses)}, ${/VmHWM.*/.exec(status)?.[0]}, ${/VmRSS.*/.exec(status)?.[0]}`);
  expect(await bridge.stop(), bridge.stderr).toBe(0);
  for (const problem of expected.problems(bridge.dataFolder)) findings.add('the record log', () => problem);
  findings.expectNone();
  if (BUDGET.isWhole) expect(expected.recordCount).toBeGreaterThan(BUDGET.bodyCount / SHARE / 20);
});

function sendingOf(body: FuzzBody, dice: Dice): Sending {
  if (dice.oneIn(100)) return tooLarge(body, dice);
  const isCompressed = dice.oneIn(4);
  let bytes: Uint8Array = isCompressed ? gzipSync(body.bytes) : body.bytes;
  let inflated: Buffer | undefined = body.bytes;
  if (isCompressed && dice.oneIn(8)) {
    bytes = mutateBytes(Buffer.from(bytes), [body.bytes], dice);
    inflated = tryGunzip(bytes);
  }
  const { signal, encoding } = body;
  const decoded =
    inflated === undefined
      ? { isRefused: true, text: '', lines: [] }
      : decodedBy(() =>
          encoding === 'json' ? decodeRequest(json.decode(signal, inflated)) : decodeBody(signal, inflated),
        );
  return { body, bytes, isCompressed, status: decoded.isRefused ? 400 : 200, decoded };
}

/** Longer than allowed, as it is sent or once it is inflated. */
function tooLarge(body: FuzzBody, dice: Dice): Sending {
  const isCompressed = dice.oneIn(2);
  const long = Buffer.concat([body.bytes, Buffer.alloc(MAX_BODY_BYTES + 1)]);
  const decoded = { isRefused: true, text: '', lines: [] };
  return { body, bytes: isCompressed ? gzipSync(long) : long, isCompressed, status: 413, decoded };
}

/** An empty body is empty in every coding. */
function tryGunzip(bytes: Uint8Array): Buffer | undefined {
  if (bytes.length === 0) return Buffer.alloc(0);
  try {
    return gunzipSync(bytes);
  } catch {
    return undefined;
  }
}

/** Sends until the answer is another than 503. */
async function post(port: number, agent: Agent, { body, bytes, isCompressed }: Sending): Promise<Answer> {
  const headers = {
    'Content-Type': body.encoding === 'json' ? 'application/json' : 'application/x-protobuf',
    ...(isCompressed ? { 'Content-Encoding': 'gzip' } : {}),
  };
  for (let tries = 1; ; tries++) {
    const answer = await send(port, { path: `/v1/${body.signal}`, headers, body: bytes, agent });
    if (answer.status !== 503 || tries === TRIES) return answer;
    await sleep(1_000);
  }
}
