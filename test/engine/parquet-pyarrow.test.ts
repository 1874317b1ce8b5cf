import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { convertFile } from '../../src/source/convert-file.js';
import { pythonWith } from '../tool/python-venv.js';
import { otlp, running, sampleLines, samplePath } from '../unit/source/reading.js';

const SAMPLES = ['build-clean', 'build-mixed', 'build-mixed-fusion', 'fail-fast', 'interrupted', 'joined', 'parse'];
const folder = mkdtempSync(join(tmpdir(), 'parquet-pyarrow-'));
const options = { otlp, signal: running };
let python: string;

beforeAll(() => {
  python = pythonWith('parquet', ['pyarrow<20', 'duckdb']);
});
afterAll(() => rmSync(folder, { recursive: true }));

describe.each(SAMPLES)('as pyarrow and DuckDB read them, the files of %s', (sample) => {
  const ours = join(folder, `${sample}.parquet`);
  const equal = {
    rows: [sampleLines(sample).length, sampleLines(sample).length],
    arrowSchemaEqual: true,
    parquetSchemaEqual: true,
    keyValuesEqual: true,
    differingCells: [],
    duckdbEqual: true,
  };

  it("are equal: the engine's own and the one made of its JSONL", async () => {
    await convertFile(samplePath(sample), ours, options);
    expect(compared({ theirs: samplePath(sample, 'otel.parquet'), ours, sameOrder: false })).toEqual(equal);
  });

  it("are equal in their order too after the engine's Parquet went through JSONL", async () => {
    const jsonl = join(folder, `${sample}.jsonl`);
    const again = join(folder, `${sample}-again.parquet`);
    await convertFile(samplePath(sample, 'otel.parquet'), jsonl, options);
    await convertFile(jsonl, again, options);
    expect(compared({ theirs: samplePath(sample, 'otel.parquet'), ours: again, sameOrder: true })).toEqual(equal);
  });
});

function compared(pair: { theirs: string; ours: string; sameOrder: boolean }): unknown {
  const script = join('test', 'tool', 'parquet_equality.py');
  return JSON.parse(execFileSync(python, [script], { input: JSON.stringify(pair), encoding: 'utf8' }));
}
