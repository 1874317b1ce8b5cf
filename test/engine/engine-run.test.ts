import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseRecordLine } from '../../src/record/record-line.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { Engine, type EngineBuild } from '../tool/engine.js';
import { pythonWith } from '../tool/python-venv.js';

/** The engine's own files of a run. */
const OWN_FILES = ['--otel-file-name', 'otel.jsonl', '--otel-parquet-file-name', 'otel.parquet'];
let python: string;

beforeAll(() => {
  python = pythonWith('parquet', ['pyarrow<20', 'duckdb']);
}, 300_000);

describe.each<EngineBuild>(['core', 'fusion'])('a real run of the %s build', (build) => {
  let engine: Engine;
  let bridge: BridgeProcess;

  beforeAll(() => {
    engine = Engine.up(build);
  }, 300_000);
  afterAll(() => engine.remove());

  beforeEach(async () => {
    bridge = await BridgeProcess.start();
    execFileSync('rm', ['-rf', 'logs', 'target', 'shop.duckdb'], { cwd: engine.project });
  });
  afterEach(() => bridge.remove());

  const dbt = (...args: string[]) =>
    engine.run([...args, '--export-to-otlp', ...OWN_FILES], { OTEL_EXPORTER_OTLP_ENDPOINT: bridge.otlpUrl });

  it.each([
    ['at the default level', ['build', '--exclude', 'tag:slow'], 1, 'error'],
    ['at trace level', ['build', '--exclude', 'tag:slow', '--log-level-file', 'trace'], 1, 'error'],
    ['that succeeds', ['build', '--exclude', 'tag:slow', 'tag:bad'], 0, 'success'],
    ['of parse', ['parse'], 0, 'success'],
  ] as const)(
    '%s is recorded as the engine recorded it',
    async (_name, args, exitCode, verdict) => {
      const result = await dbt(...args);
      expect(result.exitCode, result.output).toBe(exitCode);
      const [traceId = ''] = bridge.traceIds();
      const run = await bridge.finished(traceId);
      expect(run.steps.map((step) => step.verdict)).toEqual([verdict]);

      const ours = readFileSync(join(bridge.runFolder(traceId), 'telemetry.jsonl'), 'utf8')
        .trimEnd()
        .split('\n');
      const engines = engine.jsonlLines();
      for (const type of ['SpanEnd', 'LogRecord']) expect(comparable(ours, type)).toEqual(comparable(engines, type));
      expect(startedSpans(ours)).toEqual(startedSpans(engines));

      const script = join('test', 'tool', 'compare_parquet.py');
      const files = [
        join(engine.project, 'target', 'metadata', 'otel.parquet'),
        join(bridge.runFolder(traceId), 'telemetry.parquet'),
      ];
      expect(execFileSync(python, [script, ...files], { encoding: 'utf8' })).toMatch(/rows are the same/);
    },
    120_000,
  );
});

/** Records of a type as JSON, in any order, less what OTLP leaves out: `event_id`, `line` and `file`. */
function comparable(lines: readonly string[], type: string): readonly string[] {
  return lines
    .map((line) => JSON.parse(line) as { record_type: string; event_id?: string; attributes: Record<string, unknown> })
    .filter(({ record_type }) => record_type === type)
    .map(({ event_id: _id, ...record }) => {
      const { line: _line, file: _file, ...attributes } = record.attributes;
      return JSON.stringify({ ...record, attributes });
    })
    .sort();
}

function startedSpans(lines: readonly string[]): readonly string[] {
  return lines
    .map(parseRecordLine)
    .filter(({ recordType }) => recordType === 'SpanStart')
    .map((record) => `${record.spanId} ${record.eventType}`)
    .sort();
}
