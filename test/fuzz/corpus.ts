import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../src/record/record-batch.js';
import { SAMPLES } from '../fake/sample-run.js';
import { readFields, type WireField, writeFields } from './wire-field.js';

/** Records of a body at most: short ones are tried faster, and what is wrong with them is found faster. */
const RECORDS_A_BODY = 3;

/** Real requests in all encodings. */
export interface Corpus {
  readonly traces: readonly Buffer[];
  readonly logs: readonly Buffer[];
  readonly tracesJson: readonly Buffer[];
  readonly logsJson: readonly Buffer[];
}

/** The samples' requests, cut into requests of a few records, each with the resource and scope that it had. */
export function readCorpus(): Corpus {
  const bodiesOf = (signal: Signal) =>
    readdirSync(SAMPLES, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith(`-${signal}.bin`))
      .sort()
      .flatMap((file) => cut(readFileSync(join(SAMPLES, file)), signal));
  const traces = bodiesOf('traces');
  const logs = bodiesOf('logs');
  return { traces, logs, tracesJson: asJson(traces, 'traces'), logsJson: asJson(logs, 'logs') };
}

function cut(body: Buffer, signal: Signal): Buffer[] {
  return readFields(body, signal).flatMap((group) => {
    const scopes = (group.fields ?? []).filter(({ number }) => number === 2);
    const head = (group.fields ?? []).filter(({ number }) => number !== 2);
    return scopes.flatMap((scope) => {
      const records = (scope.fields ?? []).filter(({ number }) => number === 2);
      const scopeHead = (scope.fields ?? []).filter(({ number }) => number !== 2);
      const pieces: WireField[][] = [];
      for (let at = 0; at < records.length; at += RECORDS_A_BODY) pieces.push(records.slice(at, at + RECORDS_A_BODY));
      return pieces.map((piece) =>
        writeFields([{ ...group, fields: [...head, { ...scope, fields: [...scopeHead, ...piece] }] }]),
      );
    });
  });
}

function asJson(bodies: readonly Buffer[], signal: Signal): Buffer[] {
  const [wire, json] = [new ProtobufCodec(), new JsonCodec()];
  return bodies.map((body) => Buffer.from(json.encode(wire.decode(signal, body))));
}
