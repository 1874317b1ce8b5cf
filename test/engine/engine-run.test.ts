import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseRecordLine } from '../../src/record/record-line.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { Engine, type EngineBuild } from '../tool/engine.js';
import { engineSummary, measuredNodes, runResultNodes, summaryOf } from '../tool/engine-summary.js';
import { comparedParquet, equalParquet, parquetPython } from '../tool/parquet-equality.js';
import { logged } from '../unit/run/logged-samples.js';
import { measuresOf } from '../unit/run/measures/sample-measures.js';

/** The engine's own files of a run. */
const OWN_FILES = ['--otel-file-name', 'otel.jsonl', '--otel-parquet-file-name', 'otel.parquet'];

beforeAll(() => {
  parquetPython();
});

describe.each<EngineBuild>(['core', 'fusion'])('a real run of the %s build', (build) => {
  let engine: Engine;
  let bridge: BridgeProcess;

  beforeAll(() => {
    engine = Engine.up(build);
  });
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
    ['of parse, with a target', ['parse', '--target', 'duck'], 0, 'success'],
    ['of unit tests without their tables', ['test', '--select', 'test_type:unit'], 1, 'error'],
    ['without a selector', ['build', '--selector', 'nope'], 1, 'error'],
  ] as const)(
    '%s is recorded as the engine recorded it',
    async (_name, args, exitCode, verdict) => {
      await expectSameRecords(args, exitCode, verdict);
    },
    120_000,
  );

  it('of deps is recorded as the engine recorded it', async () => {
    const inProject = (...path: string[]) => join(engine.project, ...path);
    mkdirSync(inProject('local_package'));
    writeFileSync(inProject('local_package', 'dbt_project.yml'), 'name: local_package\nversion: "1.0.0"\n');
    writeFileSync(inProject('packages.yml'), 'packages:\n  - local: ./local_package\n');
    try {
      await expectSameRecords(['deps'], 0, 'success');
    } finally {
      for (const made of ['local_package', 'packages.yml', 'package-lock.yml', 'dbt_packages']) {
        rmSync(inProject(made), { recursive: true, force: true });
      }
    }
  });

  it.each([
    ['build', ['build', '--exclude', 'tag:slow']],
    ['test', ['test']],
    ['run', ['run', '--exclude', 'tag:slow']],
    ['seed', ['seed']],
    ['snapshot', ['snapshot']],
    ['compile', ['compile']],
  ] as const)(
    "of %s is counted as the engine's summary and run_results.json count it",
    async (_name, args) => {
      await dbt('build', '--exclude', 'tag:slow', 'tag:bad');
      const { output } = await dbt(...args);
      const lines = engine.jsonlLines().filter((line) => !line.startsWith(`{"record_type":"SpanStart"`));
      const traceId = (JSON.parse(lines.at(-1) ?? '{}') as { trace_id: string }).trace_id;
      const run = await bridge.finished(traceId);
      expect(run.steps).toHaveLength(1);
      const [command] = await measuresOf(logged(lines.filter((line) => line.includes(traceId)).map(parseRecordLine)));
      if (command === undefined) throw new Error('no command was measured');
      expect(summaryOf(command)).toEqual(engineSummary(output));
      expect(run.steps[0]?.node_counts).toEqual(command.totals.nodeCounts);
      const results = runResultNodes(readFileSync(join(engine.project, 'target', 'run_results.json'), 'utf8'));
      // The engine writes no results of what it only compiles.
      if (args[0] !== 'compile') expect(measuredNodes(command)).toEqual(results);
      const parts = [...command.nodes, ...command.unselectedNodes, ...command.hooks].map(({ share }) => share);
      const { warehouseNano: _inside, ...split } = command.split;
      expect(Object.values(split).reduce((sum, nano) => sum + nano, 0n)).toBe(command.totals.lengthNano);
      expect(parts.every(({ queryNano, workNano }) => queryNano >= 0n && workNano >= 0n)).toBe(true);
    },
    120_000,
  );

  async function expectSameRecords(args: readonly string[], exitCode: number, verdict: string): Promise<void> {
    const result = await dbt(...args);
    expect(result.exitCode, result.output).toBe(exitCode);
    const [traceId = ''] = bridge.traceIds();
    const run = await bridge.finished(traceId);
    expect(run.steps.map((step) => step.verdict)).toEqual([verdict]);

    const ours = readFileSync(join(bridge.runFolder(traceId), 'telemetry.jsonl'), 'utf8')
      .trimEnd()
      .split('\n');
    const engines = engine.jsonlLines();
    for (const type of ['SpanEnd', 'LogRecord', 'SpanStart']) {
      expect(comparable(ours, type)).toEqual(comparable(engines, type));
    }

    const pair = {
      theirs: join(engine.project, 'target', 'metadata', 'otel.parquet'),
      ours: join(bridge.runFolder(traceId), 'telemetry.parquet'),
    };
    const kept = engines.filter((line) => !line.startsWith('{"record_type":"SpanStart"'));
    expect(comparedParquet({ ...pair, match: 'otlp' })).toEqual(equalParquet(kept.length, 'otlp'));
  }
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
