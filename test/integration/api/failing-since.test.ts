import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { FailingSince } from '../../../src/api/failing-since.js';
import { RunMeasures } from '../../../src/api/run-measures.js';
import { FolderArtifactStore } from '../../../src/artifact/folder-artifact-store.js';
import { silentLogger } from '../../../src/core/logger.js';
import { RecordLogFiles } from '../../../src/log/record-log-files.js';
import { RunState } from '../../../src/run/open-run.js';
import { formatRun } from '../../../src/run/run-document.js';
import { RUN_TRACKER_DEFAULTS } from '../../../src/run/run-tracker-config.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import { MANIFEST, ManifestReader } from '../../../src/storage/manifest.js';
import type { State } from '../../../src/storage/state.js';
import { readRunPageModel } from '../../../src/web/page/run-page-model.js';
import { RunDetailsReader } from '../../../src/webhook/run-details.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { sampleLines } from '../../fake/sample-run.js';
import { commandNote } from '../../fake/webhook-facts.js';

/** Runs of one project: where a model fails, without that model, and where one of its name succeeds. */
const FAILING = sampleLines('build-mixed');
const WITHOUT = sampleLines('build-clean');
const GOOD = WITHOUT.map((line) => line.replaceAll('model.shop.revenue', 'model.shop.broken'));

/** Where a model of that name was compiled alone, and shown. */
const named = (line: string) => line.replaceAll('model.shop.stg_orders', 'model.shop.broken');
const COMPILED = sampleLines('compile').map(named);
const SHOWN = sampleLines('show').map(named);
/** Where it did well in another target, in another project that has it of a package, and for another command. */
const GOOD_IN_PROD = GOOD.map((line) => line.replaceAll('"target":"duck"', '"target":"prod"'));
const inLibrary = (lines: readonly string[]) =>
  lines.map((line) => line.replaceAll('model.shop.broken', 'model.library.broken'));
const OTHER_PROJECT = inLibrary(GOOD).map((line) => line.replaceAll('.shop.', '.other.'));
const TESTED = GOOD.map((line) => line.replaceAll('"command":"build"', '"command":"run"'));

/** 33 runs: more than a page looks at. */
const MANY = Array.from({ length: 33 }, () => FAILING);

let folder: string;
let state: State;
let reader: RecordLogFiles;
let measures: RunMeasures;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-since-'));
  state = await openFreshState(join(folder, 'state.db'));
  reader = new RecordLogFiles(folder, () => {});
  const tracker = { find: async () => undefined };
  measures = new RunMeasures({ store: state.measures, tracker, reader, logger: silentLogger });
  // 1001 to 1004, and 1005 to 1037.
  for (const [index, lines] of [GOOD, FAILING, WITHOUT, FAILING].entries()) await addRun('nightly', index + 1, lines);
  for (const [index, lines] of MANY.entries()) await addRun('hourly', index + 5, lines);
  // 1038 to 1041: what was compiled and shown of the model in between.
  for (const [index, lines] of [GOOD, COMPILED, SHOWN, FAILING].entries()) await addRun('checked', index + 38, lines);
  // 1042 to 1047, of no job, and one of last week that was imported after them.
  const others = [FAILING, GOOD, GOOD_IN_PROD, OTHER_PROJECT, TESTED, FAILING];
  for (const [index, lines] of others.entries()) await addRun('adhoc', index + 42, inLibrary(lines));
  await addRun('adhoc', 48, inLibrary(GOOD), 500_000);
}, 120_000);
afterAll(async () => {
  await state.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Has a job a finished and measured run, as long after the one before as its number says. */
async function addRun(job: string, number: number, lines: readonly string[], at = 1_000_000 * number): Promise<void> {
  const place = { job, environment: null, project: null };
  const note = commandNote(number, { scope: place, verdict: 'error', startedUnixMs: at, endedUnixMs: at });
  const { traceId } = note;
  const path = join(folder, 'runs', traceId);
  mkdirSync(path, { recursive: true });
  const text = `${lines.join('\n')}\n`.replaceAll(/"trace_id":"[0-9a-f]{32}"/g, `"trace_id":"${traceId}"`);
  writeFileSync(join(path, 'telemetry.jsonl'), text);
  const logBytes = await reader.lengthBytes(traceId);
  const model = new RunState(RUN_TRACKER_DEFAULTS);
  for await (const chunk of reader.read(traceId, { fromOffset: 0, toOffset: logBytes })) model.add(chunk, 0);
  const { invocations } = model.judge(10_000_000);
  const run = { traceId, firstSeenUnixMs: at, lastSeenUnixMs: at, state: 'finished' as const, logBytes };
  await state.runs.save([{ ...run, parquetBytes: logBytes, summary: formatRun({ ...run, invocations }) }]);
  await state.invocations.note([note], at);
  await measures.ofSteps(await state.catalog.stepsOf(FIRST_ACCOUNT_ID, [1_000 + number]));
}

/** Since when nodes of a run fail, as its page has it, by their unique ids. */
async function sinceOn(runId: number): Promise<ReadonlyMap<string | null, FailingSince | null>> {
  const run = await state.catalog.findRun(FIRST_ACCOUNT_ID, runId);
  if (run === undefined) throw new Error(`there is no run ${runId}`);
  const steps = await state.catalog.stepsOf(FIRST_ACCOUNT_ID, [runId]);
  const caller = { permission: 'admin' as const, accountId: FIRST_ACCOUNT_ID, tokenId: 1 };
  const { sections } = await readRunPageModel(run, steps, caller, {
    catalog: state.catalog,
    measures,
    redaction: 'literals',
  });
  return new Map(sections.flatMap(({ troubles }) => troubles.map(({ uniqueId, since }) => [uniqueId, since])));
}

it('is the first run of a row of failures, over runs without the node, and the good one before', async () => {
  const since = await sinceOn(1004);
  expect(since.get('model.shop.broken')).toEqual({ firstRunId: 1002, count: 2, lastGoodRunId: 1001, isAtLeast: false });
  const never = { firstRunId: 1002, count: 2, lastGoodRunId: null, isAtLeast: false };
  expect(since.get('unit_test.shop.ut_target.ut_wrong')).toEqual(never);
});

it('is the run itself where the node was good before', async () => {
  const since = await sinceOn(1002);
  expect(since.get('model.shop.broken')).toEqual({ firstRunId: 1002, count: 1, lastGoodRunId: 1001, isAtLeast: false });
});

it('is said to be at least as long as the earlier runs that are looked at', async () => {
  const since = await sinceOn(1037);
  expect(since.get('model.shop.broken')).toEqual({ firstRunId: 1007, count: 31, lastGoodRunId: null, isAtLeast: true });
});

it('is not said of a warning', async () => {
  const warnings = [...(await sinceOn(1004))].filter(([uniqueId]) => uniqueId?.includes('orders_customer_warn'));
  expect(warnings).toEqual([[expect.any(String), null]]);
});

it('is not ended by a run that only compiled the model, or showed it', async () => {
  const since = await sinceOn(1041);
  expect(since.get('model.shop.broken')).toEqual({ firstRunId: 1041, count: 1, lastGoodRunId: 1038, isAtLeast: false });
});

it('is that of runs of the same command, target and project where they are of no job, by their start', async () => {
  const since = await sinceOn(1047);
  expect(since.get('model.library.broken')).toEqual({
    firstRunId: 1047,
    count: 1,
    lastGoodRunId: 1043,
    isAtLeast: false,
  });
  const first = (await sinceOn(1042)).get('model.library.broken');
  expect(first).toEqual({ firstRunId: 1042, count: 1, lastGoodRunId: 1048, isAtLeast: false });
});

it('is said by a message of the run and of its nodes, with who owns them, and what to run', async () => {
  const store = new FolderArtifactStore(join(folder, 'artifacts'));
  const key = { runId: 1004, stepIndex: 1, path: MANIFEST };
  await store.put(key, Readable.from([readFileSync('test/fixture/manifest.json')]));
  const { catalog } = state;
  const manifests = new ManifestReader({ catalog, openArtifacts: async () => store });
  const context = { catalog, measures, manifests };
  const details = new RunDetailsReader({
    catalog,
    measures,
    context,
    reader,
    redaction: 'literals',
    webUrl: () => null,
  });
  const found = await details.read(FIRST_ACCOUNT_ID, 1004, null);
  expect(found.since).toBe('failing since #1001 (4 runs)');
  expect(found.errors.map(({ since }) => since)).toEqual(['failing since #1002 (2 runs), last good #1001']);
  const manifest = await manifests.read({ accountId: FIRST_ACCOUNT_ID, runId: 1004, jobId: 0, environmentId: 0 });
  const owners = manifest?.get('model.shop.broken')?.owners ?? [];
  expect(owners.length).toBeGreaterThan(0);
  expect(found.owners).toEqual(expect.arrayContaining([...owners]));
  expect(found.commands).toEqual([expect.stringMatching(/^dbt build --exclude tag:slow/)]);
  expect(found.retryCommands).toEqual([expect.stringMatching(/^dbt build --select broken\+/)]);
  expect(found.time).toMatch(/^49 % running, 19 % parsing/);
});
