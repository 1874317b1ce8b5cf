import { afterEach, describe, expect, it } from 'vitest';
import { CleanUp } from '../crash/clean-up.js';
import { ClusterReader } from '../crash/cluster-reader.js';
import { ClusterStage, type StagedProcess } from '../crash/cluster-stage.js';
import { Load } from '../crash/load.js';
import { RunPlan } from '../crash/run-plan.js';
import type { LoadBody } from '../crash/run-template.js';
import { SeededRandom } from '../crash/seeded-random.js';
import { runBridge } from '../e2e/run-bridge.js';
import { until } from '../tool/until.js';

const DAY_MS = 86_400_000;
const OLD_RUNS = 40;
const BOTH = ['--retain-telemetry', '1d'];

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

async function send({ httpPort }: StagedProcess, { signal, bytes }: LoadBody): Promise<void> {
  const headers = { 'content-type': 'application/x-protobuf' };
  const answer = await fetch(`http://127.0.0.1:${httpPort}/v1/${signal}`, { method: 'POST', headers, body: bytes });
  expect(answer.status).toBe(200);
}

/** Sends whole runs to all processes in turn, and waits until they are stored. */
async function sendRuns(stage: ClusterStage, plan: RunPlan, untilNumber: number): Promise<void> {
  let turn = 0;
  const load = new Load(plan, {
    port: () => stage.processes[turn++ % stage.processes.length]?.httpPort ?? 0,
    engines: 4,
    gapMs: () => 0,
    onAcknowledged: () => {},
  });
  load.start();
  await until('enough runs', () => plan.begunCount >= untilNumber);
  await load.finish();
  await until('the end of every run', async () => (await stage.openCount()) === 0);
}

/** Makes everything that there is two days old. */
async function age({ peers: { client } }: ClusterStage): Promise<void> {
  await client.query('update runs set last_seen_unix_ms = last_seen_unix_ms - $1', [2 * DAY_MS]);
  await client.query('update executions set finished_unix_ms = finished_unix_ms - $1 where status >= 10', [2 * DAY_MS]);
}

const saidOf = ({ victim }: StagedProcess): Record<string, unknown>[] =>
  victim.log.split('\n').flatMap((line) => (line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line)] : []));

describe('retention of three processes on one database and one bucket', () => {
  it('removes what is old, whichever process dies meanwhile, and nothing else', async () => {
    const stage = await ClusterStage.start({ seed: 1, cleanUp });
    const { processes } = stage;
    const { client, store } = stage.peers;
    const [first] = processes;
    if (first === undefined) throw new Error('there is no process');
    const plan = new RunPlan(new SeededRandom(7), ['build-clean', 'parse']);
    await sendRuns(stage, plan, OLD_RUNS);
    // One that is under way: its first command has ended, more may come.
    const open = plan.next();
    const [body, ...rest] = open.template.bodies(open.runNumber, open.copies);
    if (body === undefined) throw new Error('the run is empty');
    await send(first, body);
    // It is acknowledged when Kafka has it, and open when a process has read it from there.
    const heldRows = async () =>
      (await client.query<{ trace_id: string }>('select trace_id from journal_traces where is_open = 1')).rows;
    await until('the run that is under way', async () => (await heldRows()).length > 0);
    const held = await heldRows();
    expect(held).toHaveLength(1);
    await age(stage);
    const oldCount = await stage.count('executions where status >= 10');
    expect(oldCount).toBeGreaterThanOrEqual(OLD_RUNS);

    const { args, env } = stage.sharing;
    const retain = (...more: string[]) => runBridge(['retain', ...args, ...BOTH, ...more], { cwd: stage.folder, env });
    const dry = await retain('--dry-run');
    expect(dry).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`telemetry: would remove ${oldCount} `) });
    expect(await retain()).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--dry-run') });

    await stage.restartWith(BOTH);
    await until('the first removal', async () => (await stage.count('executions where status >= 10')) < oldCount);
    const { rows: leases } = await client.query(`select holder from leases where name = 'retention'`);
    const ids = await Promise.all(processes.map((one) => stage.processIdOf(one)));
    const sweeper = processes[ids.indexOf(leases[0]?.holder)];
    await sweeper?.victim.end('SIGKILL');
    const leftCount = await stage.count('executions where status >= 10');
    console.log(`${oldCount} old runs, ${leftCount} of them left when the process that removed them was killed`);
    await until('the rest', async () => (await stage.count('executions where status >= 10')) === 0);
    await until('an end of the removals', async () => (await stage.count('removals')) === 0);
    // It is said once the removals have gone from the database, which a look at that may be quicker than.
    const said = () => processes.flatMap(saidOf).filter(({ msg }) => msg === 'removed expired data');
    if (leftCount > 0) {
      await until('the word of it', async () => said().length > 0);
      expect(said()[0]).toMatchObject({ kind: 'telemetry', what: 'runs', count: leftCount });
    }

    // The one that is under way goes on, and is the only one that there is.
    const others = processes.filter((one) => one !== sweeper);
    for (const [index, one] of rest.entries()) {
      await send(others[index % others.length] ?? first, one);
    }
    await until('its end', async () => (await stage.openCount()) === 0);
    const { rows: files } = await client.query('select trace_id, object_key from journal_files');
    expect(new Set(files.map(({ trace_id }) => trace_id))).toEqual(new Set(held.map(({ trace_id }) => trace_id)));
    expect(await store.list('runs/')).toEqual(files.map(({ object_key }) => object_key).sort());
    for (const { webPort } of others) {
      const reader = new ClusterReader(webPort, stage.adminToken());
      expect([await reader.countRuns(), await reader.countQueried()]).toEqual([1, 1]);
    }
    for (const table of ['runs', 'executions', 'invocations', 'journal_traces']) {
      expect([table, await stage.count(table)]).toEqual([table, 1]);
    }
    expect(processes.flatMap(saidOf).filter(({ level }) => level === 'error')).toEqual([]);

    // Nobody is at work: the command does it. It is made old only then: the process that takes over from one that ends removes at once.
    for (const { victim } of processes) await victim.end('SIGTERM');
    await age(stage);
    expect(await retain()).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('telemetry: removed 1 runs') });
    expect(await store.list('runs/')).toEqual([]);
  });
});
