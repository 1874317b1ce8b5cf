import { execFile } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';

// The hosted platform's requests to the letter, as a shell sends them: curl encodes nothing by itself.
const SAMPLE = 'build-clean';
let bridge: BridgeProcess;
let token: string;
let runUrl: string;
beforeAll(async () => {
  bridge = await BridgeProcess.start({});
  token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
  await sendSample(bridge.otlpUrl, SAMPLE);
  await bridge.finished(sampleTraceId(SAMPLE));
  runUrl = `${bridge.webUrl}/api/v2/accounts/10001/runs/1001/`;
  await until('the complete run', async () => JSON.parse((await curl(runUrl)).text).data?.is_complete === true);
});
afterAll(() => bridge?.remove());

/** What curl writes and the status it was answered with; `-g` keeps it from taking brackets for a pattern of its own. */
async function curl(url: string, header = `Authorization: Token ${token}`) {
  const given = ['-g', '-s', '-w', '%{stderr}%{http_code}', '-H', header, url];
  const { stdout, stderr } = await promisify(execFile)('curl', given, { encoding: 'buffer', maxBuffer: 2 ** 28 });
  return { status: Number(stderr.toString()), bytes: stdout, text: stdout.toString() };
}

describe('a step’s telemetry', () => {
  const path = 'artifacts/metadata/telemetry-1-otel.parquet';

  test('is byte by byte the file in the data folder', async () => {
    const { status, bytes } = await curl(`${runUrl}${path}?step=1`);
    const file = join(bridge.runFolder(sampleTraceId(SAMPLE)), 'telemetry.parquet');
    expect([status, bytes.length]).toEqual([200, statSync(file).size]);
    expect(bytes.equals(readFileSync(file))).toBe(true);
  });

  test.each([
    ['whose number is not in the run', 'artifacts/metadata/telemetry-2-otel.parquet?step=2'],
    ['of a run that is not there', '../999/artifacts/metadata/telemetry-1-otel.parquet?step=1'],
  ])('of a step %s is 404 in the envelope', async (_what, where) => {
    const { status, text } = await curl(`${runUrl}${where}`);
    expect(status).toBe(404);
    expect(JSON.parse(text)).toMatchObject({ status: { code: 404, is_success: false }, data: null });
  });

  test('is refused without a token, in the envelope', async () => {
    const { status, text } = await curl(`${runUrl}${path}?step=1`, 'Accept: */*');
    expect([status, JSON.parse(text)]).toMatchObject([401, { status: { code: 401 }, data: null }]);
  });
});

describe('a run with its steps', () => {
  test.each([
    ['a JSON list as it is', '?include_related=["run_steps"]'],
    ['a JSON list, encoded', '?include_related=%5B%22run_steps%22%5D'],
    ['a JSON list, encoded in lower case', '?include_related=%5b%22run_steps%22%5d'],
    ['a JSON list of two with a blank', '?include_related=[%22run_steps%22,%20%22job%22]'],
    ['a JSON list of two with a plus for the blank', '?include_related=%5B%22run_steps%22%2C+%22job%22%5D'],
    ['a list in single quotes', "?include_related=['run_steps']"],
    ['a list in single quotes, encoded', '?include_related=%5B%27run_steps%27%5D'],
    ['names with commas', '?include_related=run_steps,job,trigger'],
    ['names with encoded commas', '?include_related=run_steps%2Cjob'],
    ['the parameter twice', '?include_related=run_steps&include_related=job'],
    ['the parameter with brackets in its name', '?include_related[]=run_steps&include_related[]=job'],
    ['the same, encoded', '?include_related%5B%5D=run_steps'],
  ])('is asked for by %s', async (_what, query) => {
    const { status, text } = await curl(runUrl + query);
    expect(status).toBe(200);
    expect(JSON.parse(text).data).toMatchObject({ id: 1001, run_steps: [{ index: 1, status: 10 }] });
  });

  test('is the same without the slash at the end', async () => {
    const { text } = await curl(`${runUrl.slice(0, -1)}?include_related=["run_steps"]`);
    expect(JSON.parse(text).data.run_steps).toHaveLength(1);
  });

  test.each(['', '?include_related=', '?include_related=[]'])('has none with %j', async (query) => {
    expect(JSON.parse((await curl(runUrl + query)).text).data.run_steps).toEqual([]);
  });
});
