import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { convertFile } from '../../src/files/convert-file.js';
import { runBridge } from '../e2e/run-bridge.js';
import { sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { LARGE_SAMPLES } from '../tool/large-samples.js';
import { comparedParquet, equalParquet, type ParquetPair, parquetPython } from '../tool/parquet-equality.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';
import { otlp, running, sampleLines, samplePath } from '../unit/files/reading.js';

const SMALL_SAMPLES = [
  'build-clean',
  'build-mixed',
  'build-mixed-fusion',
  'fail-fast',
  'interrupted',
  'joined',
  'parse',
];
const folder = mkdtempSync(join(tmpdir(), 'parquet-pyarrow-'));
const options = { otlp, signal: running };

beforeAll(() => void parquetPython());
afterAll(() => rmSync(folder, { recursive: true }));

describe.each([...SMALL_SAMPLES, ...LARGE_SAMPLES])('as pyarrow and DuckDB read them, the files of %s', (sample) => {
  const theirs = samplePath(sample, 'otel.parquet');
  const rowCount = sampleLines(sample).length;

  it("are equal: the engine's own and the one made of its JSONL", async () => {
    const ours = join(folder, `${sample}.parquet`);
    await convertFile(samplePath(sample), ours, options);
    expectEqual({ theirs, ours, match: 'ids' }, rowCount);
  });

  it("are equal in their order too after the engine's Parquet went through JSONL", async () => {
    const jsonl = join(folder, `${sample}.jsonl`);
    const again = join(folder, `${sample}-again.parquet`);
    await convertFile(theirs, jsonl, options);
    await convertFile(jsonl, again, options);
    expectEqual({ theirs, ours: again, match: 'order' }, rowCount);
  });
});

describe.each(LARGE_SAMPLES)(
  "as pyarrow and DuckDB read it, %s has the engine's cells, whichever way it took",
  (sample) => {
    const theirs = samplePath(sample, 'otel.parquet');
    const rowCount = sampleLines(sample).length;
    const traceId = sampleTraceId(sample);

    it('record by record, from Parquet to Parquet', async () => {
      const ours = join(folder, `${sample}-records.parquet`);
      await convertFile(theirs, ours, options);
      expectEqual({ theirs, ours, match: 'order' }, rowCount);
    });

    it('in threads of their own', async () => {
      const ours = join(folder, `${sample}-threads.parquet`);
      await convertFile(samplePath(sample), ours, { ...options, threads: 2 });
      expectEqual({ theirs, ours, match: 'ids' }, rowCount);
    });

    it.each(['otel.jsonl', 'otel.parquet'])('as the run of an imported %s', async (file) => {
      const data = join(folder, `${sample}-${file}-data`);
      const args = ['import', '--data-dir', data, samplePath(sample, file)];
      const { exitCode, stderr } = await runBridge(args, { cwd: folder, timeoutMs: 240_000 });
      expect(exitCode, stderr).toBe(0);
      const ours = join(data, 'runs', traceId, 'telemetry.parquet');
      expectEqual({ theirs, ours, match: 'ids' }, rowCount);
    });

    it('as the run that came over OTLP, as its artifact, and after that was imported elsewhere', async () => {
      const bridge = await BridgeProcess.start();
      try {
        await sendSample(bridge.otlpUrl, sample);
        await bridge.finished(traceId, 120_000);
        const ours = join(bridge.runFolder(traceId), 'telemetry.parquet');
        const sentCount = sampleLines(sample).filter((line) => !line.startsWith('{"record_type":"SpanStart"')).length;
        expectEqual({ theirs, ours, match: 'otlp' }, sentCount);
        const artifact = await artifactOf(bridge, 'metadata/telemetry-1-otel.parquet');
        expect(artifact.equals(readFileSync(ours))).toBe(true);
        const downloaded = join(folder, `${sample}-artifact.parquet`);
        writeFileSync(downloaded, artifact);
        const data = join(folder, `${sample}-artifact-data`);
        await runBridge(['import', '--data-dir', data, downloaded], { cwd: folder, timeoutMs: 240_000 });
        const again = join(data, 'runs', traceId, 'telemetry.parquet');
        expectEqual({ theirs, ours: again, match: 'otlp' }, sentCount);
      } finally {
        await bridge.remove();
      }
    });
  },
);

function expectEqual(pair: ParquetPair, rowCount: number): void {
  expect(comparedParquet(pair)).toEqual(equalParquet(rowCount, pair.match));
}

/** An artifact of the only run of a bridge, once it is listed. */
async function artifactOf(bridge: BridgeProcess, path: string): Promise<Buffer> {
  const token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
  const ask = async (route: string) => {
    const url = `${bridge.webUrl}/api/v2/accounts/10001/runs/${route}`;
    const answer = await fetch(url, { headers: { authorization: `Token ${token}` } });
    if (!answer.ok) throw new Error(`${route} is ${answer.status}`);
    return Buffer.from(await answer.arrayBuffer());
  };
  const { data } = JSON.parse((await ask('')).toString()) as { data: readonly { id: number }[] };
  const artifacts = `${data[0]?.id}/artifacts`;
  await until(`${path} in the list`, async () => (await ask(`${artifacts}/`)).toString().includes(`"${path}"`));
  return ask(`${artifacts}/${path}`);
}
