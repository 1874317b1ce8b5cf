import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { OtelRunMapper } from '../src/export/mapping/otel-run-mapper.js';
import { SharedMapping } from '../src/export/mapping/shared-mapping.js';
import { OtlpEncoder } from '../src/export/otlp-destination.js';
import type { Resource } from '../src/record/attributes.js';
import { LARGE_SAMPLES, largeSampleFolder } from '../test/tool/large-samples.js';
import { formatSpread, spreadOf } from './spread.js';

/** How much of a log is pushed at once, as the export thread does. */
const CHUNK_BYTES = 1024 * 1024;
const BATCH_ITEMS = 512;
const RESOURCE: Resource = { attributes: { 'service.name': 'dbt' }, scope: { name: 'dbt', version: '2' } };
const SAMPLES = 'test/fixture/samples';
/** Rounds in which the compiler warms up. */
const WARM_UP_ROUNDS = 2;

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '10' } } });

/**
 * What an export costs from the lines of the record log to the bodies of requests, in CPU time of the process: of a
 * destination that has exported the same before, so that it knows the texts, and of one that has not.
 */
for (const name of LARGE_SAMPLES) measure(name, [readFileSync(join(largeSampleFolder(name), 'otel.jsonl'))]);
const small = readdirSync(SAMPLES, { withFileTypes: true }).filter((entry) => entry.isDirectory());
measure(
  'small runs',
  small.map(({ name }) => readFileSync(join(SAMPLES, name, 'otel.jsonl'))),
);

function measure(name: string, logs: readonly Buffer[]): void {
  const known = new SharedMapping();
  const again: number[] = [];
  const first: number[] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + Number(values.rounds); round++) {
    const toKnown = microsPerSpan(logs, known);
    const toNew = microsPerSpan(logs, new SharedMapping());
    if (round < WARM_UP_ROUNDS) continue;
    again.push(toKnown);
    first.push(toNew);
  }
  console.log(`${name}: ${spread(again)} µs a span, to a new destination ${spread(first)}`);
}

/** CPU time of the process, for spans; log records are in it. */
function microsPerSpan(logs: readonly Buffer[], known: SharedMapping): number {
  const encoder = new OtlpEncoder('protobuf');
  const before = process.cpuUsage();
  let spanCount = 0;
  for (const log of logs) {
    const mapper = new OtelRunMapper(undefined, known);
    for (let offset = 0; offset < log.length; ) {
      const end = log.length - offset <= CHUNK_BYTES ? log.length : log.lastIndexOf('\n', offset + CHUNK_BYTES) + 1;
      mapper.pushLines({ resource: RESOURCE, offset, lines: log.subarray(offset, end) });
      spanCount += encode(encoder, mapper, end === log.length);
      offset = end;
    }
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / spanCount;
}

function encode(encoder: OtlpEncoder, mapper: OtelRunMapper, isQuiet: boolean): number {
  const items = mapper.take(isQuiet);
  const spans = items.flatMap((item) => (item.signal === 'traces' ? [item.span] : []));
  const logs = items.flatMap((item) => (item.signal === 'logs' ? [item.log] : []));
  for (let from = 0; from < spans.length; from += BATCH_ITEMS) {
    encoder.encode({ signal: 'traces', items: spans.slice(from, from + BATCH_ITEMS) });
  }
  for (let from = 0; from < logs.length; from += BATCH_ITEMS) {
    encoder.encode({ signal: 'logs', items: logs.slice(from, from + BATCH_ITEMS) });
  }
  return spans.length;
}

function spread(numbers: readonly number[]): string {
  return formatSpread(spreadOf(numbers), 2);
}
