import { expect, it } from 'vitest';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import { splitJson } from '../../src/otlp/split-json.js';
import {
  type DecodedRequest,
  JsonDecoder,
  LargeBodyDecoder,
  splitProtobuf,
  WireDecoder,
} from '../../src/otlp/wire/wire-decoder.js';
import type { Signal } from '../../src/record/record-batch.js';
import { decodeAtOnce } from '../fake/decode-at-once.js';
import { difference, misreading } from '../tool/protobufjs-reading.js';
import { TRIAL } from '../tool/trial.js';
import { BUDGET, fuzzAgain } from './budget.js';
import { readCorpus } from './corpus.js';
import { changedByReading, type Decoded, decodedBy } from './decoded.js';
import { Findings } from './findings.js';
import { FuzzBodies, type FuzzBody } from './fuzz-body.js';
import { HeapWatch } from './heap-watch.js';
import { RunTwins } from './run-twins.js';
import { smallest } from './smallest.js';

const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
const fast = {
  traces: new WireDecoder('traces', codecs),
  logs: new WireDecoder('logs', codecs),
};
const inJson = {
  traces: new JsonDecoder('traces', fast.traces, codecs),
  logs: new JsonDecoder('logs', fast.logs, codecs),
};
const straight = { protobuf: fast, json: inJson };
/** Cuts every body that has more than one record. */
const pieces = {
  protobuf: {
    traces: new LargeBodyDecoder('traces', fast.traces, splitProtobuf, 1),
    logs: new LargeBodyDecoder('logs', fast.logs, splitProtobuf, 1),
  },
  json: {
    traces: new LargeBodyDecoder('traces', inJson.traces, splitJson, 1),
    logs: new LargeBodyDecoder('logs', inJson.logs, splitJson, 1),
  },
};

/** Bodies that are added to one run model. */
const BODIES_A_RUN = 40;

it(`decodes ${BUDGET.bodyCount} bodies to what protobufjs reads, whole and by pieces, changes no record and keeps nothing`, () => {
  const bodies = new FuzzBodies(BUDGET.seed, readCorpus());
  const findings = new Findings();
  const heap = new HeapWatch(BUDGET.bodyCount);
  const counts = { refused: 0, empty: 0, records: 0 };
  for (let index = 0; index < BUDGET.bodyCount; index++) {
    const number = BUDGET.first + index;
    const body = bodies.at(number);
    const problem = problemOf(body, counts);
    if (problem !== undefined) findings.add(problem.kind, () => described(problem, body, number));
    heap.after(index);
  }
  console.log(`${BUDGET.bodyCount} bodies of seed ${BUDGET.seed}: ${JSON.stringify(counts)}; ${heap}`);
  findings.expectNone();
  if (BUDGET.isWhole) expect(counts.records).toBeGreaterThan(BUDGET.bodyCount / 10);
  if (TRIAL.seconds !== undefined) expect(heap.growthMiB, `${heap}`).toBeLessThan(16);
});

interface Problem {
  readonly kind: string;
  readonly detail: string;
}

/** The first thing that is wrong with how a body is taken. */
function problemOf(body: FuzzBody, counts?: { refused: number; empty: number; records: number }): Problem | undefined {
  const { signal, encoding, bytes, twin } = body;
  const decoded = attempt('the decoder', () => straight[encoding][signal].decode(bytes));
  if ('kind' in decoded) return decoded;
  if (counts !== undefined) {
    if (decoded.isRefused) counts.refused++;
    else if (decoded.lines.length === 0) counts.empty++;
    counts.records += decoded.lines.length;
  }
  const problem = encoding === 'json' ? undefined : (misread(body) ?? differentInJson(signal, twin, decoded));
  return problem ?? piecewise(body, decoded) ?? changed(decoded);
}

function misread({ signal, bytes }: FuzzBody): Problem | undefined {
  const detail = misreading(signal, bytes, (body) => straight.protobuf[signal].decode(body));
  return detail === undefined ? undefined : { kind: 'the decoder reads other things than protobufjs', detail };
}

function differentInJson(signal: Signal, twin: Buffer | undefined, decoded: Decoded): Problem | undefined {
  if (twin === undefined) return undefined;
  const other = attempt('the decoder of JSON', () => straight.json[signal].decode(twin));
  if ('kind' in other || other.text === decoded.text) return 'kind' in other ? other : undefined;
  return { kind: 'in JSON it is another request', detail: difference('in protobuf it is', other.text, decoded.text) };
}

function changed({ lines }: Decoded): Problem | undefined {
  for (const line of lines) {
    const change = changedByReading(line);
    if (change !== undefined) return { kind: 'a record is changed by writing and reading it', detail: change };
  }
  return undefined;
}

/** Piece by piece the records are the same; what is passed on comes in pieces, too. */
function piecewise({ signal, encoding, bytes }: FuzzBody, decoded: Decoded): Problem | undefined {
  const cut = attempt('the decoder by pieces', () => decodeAtOnce(pieces[encoding][signal], bytes));
  if ('kind' in cut) return cut;
  const linesOf = ({ isRefused, lines }: Decoded) => [isRefused, ...lines.map(({ line }) => line).sort()].join('\n');
  if (linesOf(cut) === linesOf(decoded)) return undefined;
  return {
    kind: 'the decoder by pieces has other records',
    detail: difference('whole it has', linesOf(cut), linesOf(decoded)),
  };
}

function attempt(name: string, decode: () => DecodedRequest): Decoded | Problem {
  try {
    return decodedBy(decode);
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { kind: `${name} throws ${text.split('\n')[0]}`, detail: text };
  }
}

/** A failure with the smallest body that has it, and how to have it again. */
function described({ kind, detail }: Problem, body: FuzzBody, number: number): string {
  const { twin: _twin, ...alone } = body;
  const fails = (bytes: Buffer) => problemOf({ ...alone, bytes })?.kind === kind;
  const isShrinkable = body.encoding === 'protobuf' && fails(body.bytes);
  const small = isShrinkable ? smallest(body.bytes, body.signal, fails) : body.bytes;
  const smallDetail = isShrinkable ? (problemOf({ ...alone, bytes: small })?.detail ?? detail) : detail;
  const again = fuzzAgain(number, 1);
  const hex = body.encoding === 'json' ? small.toString('utf8') : small.toString('hex');
  return `${again}\n${body.signal} ${body.encoding}: ${hex}\n${smallDetail}`;
}

it('sums up runs the same way by the numbers of pages as by their records', () => {
  const bodies = new FuzzBodies(BUDGET.seed, readCorpus());
  const findings = new Findings();
  for (let index = 0; index < BUDGET.bodyCount / 4; index += BODIES_A_RUN) {
    const first = BUDGET.first + index;
    const runs = new RunTwins();
    const again = fuzzAgain(first, 4 * BODIES_A_RUN);
    try {
      for (let number = first; number < first + BODIES_A_RUN; number++) addTo(runs, bodies.at(number));
      const difference = runs.difference();
      if (difference !== undefined) findings.add('the run model differs', () => `${again}\n${difference}`);
    } catch (error) {
      findings.add(`the run model throws ${String(error)}`, () => `${again}\n${(error as Error).stack}`);
    }
  }
  findings.expectNone();
});

function addTo(runs: RunTwins, { signal, encoding, bytes }: FuzzBody): void {
  if (encoding === 'json') return;
  let decoded: DecodedRequest;
  try {
    decoded = fast[signal].decode(bytes);
  } catch {
    return; // The other test looks at these.
  }
  runs.add(decoded.delivery);
  decoded.delivery.release?.();
}
