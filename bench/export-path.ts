import { readdirSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { KnownLayouts } from '../src/exporter/lines/known-layouts.js';
import { OtelRunMapper } from '../src/exporter/mapping/otel-run-mapper.js';
import { OtlpEncoder } from '../src/exporter/otlp-destination.js';
import { parseRecordLine } from '../src/record/record-line.js';
import type { Resource } from '../src/record/resource.js';
import { nodeLines } from './node-lines.js';
import { formatSpread, spreadOf } from './spread.js';

/** How much of a log is pushed at once, as the export thread does. */
const CHUNK_BYTES = 1024 * 1024;
const BATCH_ITEMS = 512;
const RESOURCE: Resource = { attributes: { 'service.name': 'dbt' }, scope: { name: 'dbt', version: '2' } };
const SAMPLES = 'test/fixture/samples';

const layouts = new KnownLayouts();
const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '10' }, spans: { type: 'string', default: '16384' } },
});

/** What an export costs from the lines of the record log to the bodies of requests, by lines and by records, in turns. */
compare('one run of nodes', [nodeLines(Number(values.spans))]);
const samples = readdirSync(SAMPLES, { withFileTypes: true }).filter((entry) => entry.isDirectory());
compare(
  'real runs',
  samples.map(({ name }) => readFileSync(`${SAMPLES}/${name}/otel.jsonl`)),
);

function compare(name: string, logs: readonly Buffer[]): void {
  const byLines: number[] = [];
  const byRecords: number[] = [];
  for (let round = 0; round <= Number(values.rounds); round++) {
    const lines = microsPerSpan(logs, pushLines);
    const records = microsPerSpan(logs, pushRecords);
    // The first round compiles.
    if (round === 0) continue;
    byLines.push(lines);
    byRecords.push(records);
  }
  const ratios = byLines.map((lines, index) => lines / (byRecords[index] ?? Number.NaN));
  console.log(
    `${name}: by lines ${spread(byLines)} µs a span, by records ${spread(byRecords)}, ratio ${spread(ratios)}`,
  );
}

type Push = (mapper: OtelRunMapper, chunk: Buffer, offset: number) => void;

function pushLines(mapper: OtelRunMapper, lines: Buffer, offset: number): void {
  mapper.pushLines({ resource: RESOURCE, offset, lines });
}

function pushRecords(mapper: OtelRunMapper, chunk: Buffer, from: number): void {
  let offset = from;
  const records = chunk
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const endOffset = offset + Buffer.byteLength(line) + 1;
      const logged = { record: parseRecordLine(line), resource: RESOURCE, offset, endOffset };
      offset = endOffset;
      return logged;
    });
  mapper.push(records);
}

/** CPU time of the process, for spans; log records are in it. */
function microsPerSpan(logs: readonly Buffer[], push: Push): number {
  const encoder = new OtlpEncoder('protobuf');
  const before = process.cpuUsage();
  let spanCount = 0;
  for (const log of logs) {
    const mapper = new OtelRunMapper(undefined, layouts);
    for (let offset = 0; offset < log.length; ) {
      const end = log.length - offset <= CHUNK_BYTES ? log.length : log.lastIndexOf('\n', offset + CHUNK_BYTES) + 1;
      push(mapper, log.subarray(offset, end), offset);
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
