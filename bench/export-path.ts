import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { OtelRunMapper } from '../src/export/mapping/otel-run-mapper.js';
import { SharedMapping } from '../src/export/mapping/shared-mapping.js';
import { RequestEncoder } from '../src/export/wire/export-request.js';
import { cutRanges } from '../src/export/wire/item-window.js';
import { JsonCodec } from '../src/otlp/json-codec.js';
import { ProtobufCodec } from '../src/otlp/protobuf-codec.js';
import type { Resource } from '../src/record/attributes.js';
import { LARGE_SAMPLES, largeSampleFolder } from '../test/tool/large-samples.js';
import { formatSpread, spreadOf } from './spread.js';

const loadCodecs = async () => ({ json: new JsonCodec(), protobuf: new ProtobufCodec() });
/** How much of a log is pushed at once, as exports do. */
const CHUNK_BYTES = 256 * 1024;
const BATCH_ITEMS = 512;
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const RESOURCE: Resource = { attributes: { 'service.name': 'dbt' }, scope: { name: 'dbt', version: '2' } };
const SAMPLES = 'test/fixture/samples';
/** Rounds in which the compiler warms up. */
const WARM_UP_ROUNDS = 2;

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '10' } } });

/**
 * What an export costs from the lines of the record log to the bodies of requests, in CPU time of the process: of a
 * destination that has exported the same before, so that it knows the texts, and of one that has not.
 */
for (const name of LARGE_SAMPLES) await measure(name, [readFileSync(join(largeSampleFolder(name), 'otel.jsonl'))]);
const small = readdirSync(SAMPLES, { withFileTypes: true }).filter((entry) => entry.isDirectory());
await measure(
  'small runs',
  small.map(({ name }) => readFileSync(join(SAMPLES, name, 'otel.jsonl'))),
);

async function measure(name: string, logs: readonly Buffer[]): Promise<void> {
  const known = new SharedMapping();
  const again: number[] = [];
  const first: number[] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + Number(values.rounds); round++) {
    const toKnown = await microsPerSpan(logs, known);
    const toNew = await microsPerSpan(logs, new SharedMapping());
    if (round < WARM_UP_ROUNDS) continue;
    again.push(toKnown);
    first.push(toNew);
  }
  console.log(`${name}: ${spread(again)} µs a span, to a new destination ${spread(first)}`);
}

/** CPU time of the process, for spans; log records are in it. */
async function microsPerSpan(logs: readonly Buffer[], known: SharedMapping): Promise<number> {
  const encoder = new RequestEncoder('protobuf', loadCodecs, MAX_BODY_BYTES);
  const before = process.cpuUsage();
  let spanCount = 0;
  for (const log of logs) {
    const mapper = new OtelRunMapper(undefined, known);
    for (let offset = 0; offset < log.length; ) {
      const end = log.length - offset <= CHUNK_BYTES ? log.length : log.lastIndexOf('\n', offset + CHUNK_BYTES) + 1;
      mapper.pushLines({ resource: RESOURCE, offset, lines: log.subarray(offset, end) });
      spanCount += await encode(encoder, mapper, end === log.length);
      offset = end;
    }
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / spanCount;
}

async function encode(encoder: RequestEncoder, mapper: OtelRunMapper, isQuiet: boolean): Promise<number> {
  const items = mapper.take(isQuiet);
  let spanCount = 0;
  for (const signal of ['traces', 'logs'] as const) {
    for (let ranges = items[signal]; ranges.length > 0; ) {
      const [front, rest] = cutRanges(ranges, BATCH_ITEMS);
      const { itemCount } = await encoder.encode({ signal, ranges: front });
      if (signal === 'traces') spanCount += itemCount;
      ranges = rest;
    }
  }
  return spanCount;
}

function spread(numbers: readonly number[]): string {
  return formatSpread(spreadOf(numbers), 2);
}
