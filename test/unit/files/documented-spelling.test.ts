import { describe, expect, it } from 'vitest';
import { convertFile } from '../../../src/files/convert-file.js';
import { openSource } from '../../../src/files/open-source.js';
import { PublicSchema } from '../../../src/otlp/public-schema.js';
import type { JsonObject, JsonValue } from '../../../src/record/attributes.js';
import { formatRecordLine, parseRecordLine } from '../../../src/record/record-line.js';
import { rowsOf, writeParquet } from '../parquet/samples.js';
import { otlp, readAll, running, sampleLines, samplePath, temporaryFolder } from './reading.js';

const { path, write } = temporaryFolder('documented-spelling');
const schema = PublicSchema.load();

/** A line as documentation spells it: enums without their prefix, its own names of fields and spans, no severity number. */
function documented(line: string): string {
  const { severity_number: _number, ...record } = JSON.parse(line) as Record<string, JsonValue> & {
    event_type: string;
  };
  const attributes = documentedFields(record.attributes as JsonObject, record.event_type);
  const { unique_id: uniqueId } = record.attributes as JsonObject;
  const isNode = /\.Node(Evaluated|Processed)$/.test(record.event_type);
  return JSON.stringify({ ...record, ...(isNode ? { span_name: `Node(${String(uniqueId)})` } : {}), attributes });
}

function documentedFields(fields: JsonObject, message: string): JsonObject {
  const spelt = Object.entries(fields).map(([name, value]): [string, JsonValue] => {
    const type = schema.message(message)?.field(name)?.type;
    if (type?.kind === 'message' && typeof value === 'object') {
      return [name, documentedFields(value as JsonObject, type.message.fullName)];
    }
    if (type?.kind !== 'enum' || typeof value !== 'string') return [name, value];
    const word = value.slice(prefixOf([...type.enum.numberByName.keys()]).length).toLowerCase();
    if (name === 'last_phase') return ['phase', capitalized(word)];
    return [name, name === 'phase' ? capitalized(word) : word.replaceAll('_', '')];
  });
  const { node_test_detail: detail, ...rest } = Object.fromEntries(spelt);
  if (detail === undefined) return rest;
  const { test_outcome = 'passed', ...found } = detail as JsonObject;
  return { ...rest, node_test_detail: found, test_outcome };
}

const capitalized = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

/** What all names of an enum begin with, up to an underscore; that of a single one is written out. */
function prefixOf(names: readonly string[]): string {
  if (names.length === 1) return '';
  let length = 0;
  while (names.every((name) => name[length] === names[0]?.[length])) length++;
  return names[0]?.slice(0, names[0].lastIndexOf('_', length - 1) + 1) ?? '';
}

const parsed = (lines: readonly string[]) => lines.map((line): unknown => JSON.parse(line));

describe.each(['build-mixed', 'build-mixed-fusion', 'interrupted'])(
  'the records of %s as documentation spells them',
  (sample) => {
    const lines = sampleLines(sample);
    const file = write(`${sample}.jsonl`, `${lines.map(documented).join('\n')}\n`);

    it('are read from JSONL as the engine writes them', async () => {
      const { records, rejects } = await readAll(await openSource(file, otlp));
      expect(rejects).toEqual([]);
      expect(parsed(records.map(formatRecordLine))).toEqual(parsed(lines));
    });

    it('become the Parquet of the engine’s lines', async () => {
      await convertFile(file, path(`${sample}.parquet`), { otlp, signal: running });
      await convertFile(samplePath(sample), path(`${sample}-engine.parquet`), { otlp, signal: running });
      const engines = await rowsOf(path(`${sample}-engine.parquet`));
      expect(await rowsOf(path(`${sample}.parquet`))).toEqual(engines);
    });
  },
);

it('a value that the schema does not know stays as it is, from JSONL to Parquet', async () => {
  const line = sampleLines('build-mixed').find((each) => each.includes('"last_phase":"EXECUTION_PHASE_RUN"')) ?? '';
  const file = write('new.jsonl', `${line.replace('"last_phase":"EXECUTION_PHASE_RUN"', '"last_phase":"Moon"')}\n`);
  await convertFile(file, path('new.parquet'), { otlp, signal: running });
  expect(await rowsOf(path('new.parquet'))).toMatchObject([{ attributes: { phase: 'Moon' } }]);
});

it('a record in other spelling is read from Parquet as the engine writes it', async () => {
  const line = sampleLines('build-mixed').find((each) => each.includes('"last_phase":"EXECUTION_PHASE_RUN"')) ?? '';
  // The object path writes what it is given: as another program's file would have it.
  const record = parseRecordLine(line.replace('"last_phase":"EXECUTION_PHASE_RUN"', '"last_phase":"Run"'));
  await writeParquet(path('other.parquet'), [{ ...record, severityNumber: 0 }]);
  const { records } = await readAll(await openSource(path('other.parquet'), otlp));
  expect(records.map(formatRecordLine)).toEqual([line]);
});
