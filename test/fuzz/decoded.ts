import { OtlpDecodeError } from '../../src/otlp/otlp-codec.js';
import type { DecodedRequest } from '../../src/otlp/wire/wire-decoder.js';
import { type Attributes, resourceKey } from '../../src/record/attributes.js';
import type { RecordBatch } from '../../src/record/record-batch.js';
import { formatRecordLine, parseRecordLine } from '../../src/record/record-line.js';
import type { TelemetryRecord } from '../../src/record/telemetry-record.js';

/** What a decoder made of a body, to be compared with what another made of it. */
export interface Decoded {
  /** Of a refused body there is nothing else. */
  readonly isRefused: boolean;
  /** Each trace's and resource's lines, in order; what is passed on; what was rejected. */
  readonly text: string;
  /** Each record's line, with its line break, by trace. */
  readonly lines: readonly { readonly traceId: string; readonly record: TelemetryRecord; readonly line: string }[];
}

/** @throws whatever the decoder throws that is not an OtlpDecodeError: a receiver would answer 500 */
export function decodedBy(decode: () => DecodedRequest): Decoded {
  try {
    const { delivery, rejectedCount, rejectionMessage } = decode();
    const groups = new Map<string, string[]>();
    const lines = delivery.batches.flatMap((batch) => {
      const of = linesOf(batch);
      const key = `${batch.traceId} ${resourceKey(batch.resource)}`;
      groups.set(key, [...(groups.get(key) ?? []), ...of.map(({ line }) => line)]);
      return of.map((each) => ({ traceId: batch.traceId, ...each }));
    });
    const passthrough = delivery.passthrough.map(({ signal, recordCount, body }) => `${signal} ${recordCount} ${body}`);
    const text = [...groups].map(([key, of]) => `${key}\n${of.join('')}`);
    delivery.release?.();
    return {
      isRefused: false,
      text: [...text, ...passthrough, `${rejectedCount} rejected: ${rejectionMessage}`].join('\n'),
      lines,
    };
  } catch (error) {
    if (!(error instanceof OtlpDecodeError)) throw error;
    return { isRefused: true, text: 'refused', lines: [] };
  }
}

/** What is wrong with a record and its line: it has to read back as what it is. `undefined` when nothing is. */
export function changedByReading({ record, line }: Decoded['lines'][number]): string | undefined {
  if (line.indexOf('\n') !== line.length - 1) return `not one line: ${line}`;
  const read = parseRecordLine(line.slice(0, -1));
  if (`${formatRecordLine(read)}\n` !== line) return `written again, it is another line: ${formatRecordLine(read)}`;
  const [was, is] = [everythingOf(record), everythingOf(read)];
  return was === is ? undefined : `read back, ${was} is ${is}`;
}

function linesOf({ records }: RecordBatch): { record: TelemetryRecord; line: string }[] {
  return records.map((record) => ({ record, line: `${formatRecordLine(record)}\n` }));
}

function everythingOf(record: TelemetryRecord): string {
  const { line: _line, attributes, ...rest } = record;
  const links = 'links' in rest ? rest.links : null;
  // A line with fields that the engine does not write, or with attributes of links, is parsed whole, so that numbers
  // that a double does not hold are spelled otherwise in the record that was read; in the file they stay as they were.
  const isParsedWhole = rest.unknownFields !== undefined || links?.some((link) => link.attributes.json !== '{}');
  const textOf = ({ json }: Attributes) => (isParsedWhole ? JSON.stringify(JSON.parse(json)) : json);
  const readable = links?.map((link) => ({ ...link, attributes: textOf(link.attributes) })) ?? null;
  const all = { ...rest, links: readable, attributes: textOf(attributes) };
  return JSON.stringify(Object.entries(all).sort(), (_, value) => (typeof value === 'bigint' ? `${value}n` : value));
}
