import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import { ofAccount, type Resource, STEP_ATTRIBUTE, UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import { RunLog } from '../../../src/run/run-log.js';
import { stepStart } from '../../contract/step-registry.contract.js';
import { fromJsonl } from './logged-samples.js';
import { asTrace, TrackerBench } from './tracker-bench.js';

const RECORDS = fromJsonl('build-clean');
const TRACE = RECORDS[0]?.record.traceId as TraceId;
const EXIT_0 = { kind: 'exited', exitCode: 0 } as const;
const SIGKILL = { kind: 'killed', signal: 'SIGKILL' } as const;

let bench: TrackerBench;
beforeEach(async () => {
  bench = await TrackerBench.open();
});
afterEach(() => bench.close());

/** The records that were written before the engine was killed in the middle of its work. */
function cutOff(records: readonly LoggedRecord[]): readonly LoggedRecord[] {
  const nodeStarts = records.flatMap(({ record }, index) =>
    record.recordType === 'SpanStart' && record.eventType.endsWith('.NodeProcessed') ? [index] : [],
  );
  return records.slice(0, (nodeStarts[4] ?? 0) + 1);
}

function ofStep(records: readonly LoggedRecord[], stepId: string, further: Resource['attributes'] = {}) {
  const resource = { ...UNKNOWN_RESOURCE, attributes: { [STEP_ATTRIBUTE]: stepId, ...further } };
  return records.map((record) => ({ ...record, resource }));
}

/** Of each event, whose its invocations are. */
function stepsTold() {
  return bench.listener.events.map(({ run }) => run.invocations.map(({ step }) => step?.stepId));
}

async function runFile() {
  return JSON.parse(await readFile(join(bench.folder, 'runs', TRACE, 'run.json'), 'utf8')) as unknown;
}

describe('a run whose command somebody runs', () => {
  beforeEach(async () => {
    await bench.registry.register(stepStart('a', { job: 'nightly', startedUnixMs: 0 }));
    await bench.registry.attach('a', TRACE);
  });

  it('is judged at once when its command ends, with what ended it', async () => {
    await bench.append(cutOff(RECORDS));
    expect(bench.listener.story).toEqual(['started']);
    await bench.registry.end('a', SIGKILL, Date.UTC(2030, 0));
    await bench.tracker.idle();
    expect(bench.listener.story).toEqual(['started', 'ended 1 error', 'finished']);
    const run = await bench.tracker.find(TRACE);
    expect(run?.invocations[0]).toMatchObject({
      statusMessage: expect.stringMatching(/^The command was killed by SIGKILL; \d+ nodes had not ended$/),
      step: { stepId: 'a', stepIndex: 1, job: 'nightly', ending: SIGKILL },
    });
    expect(await bench.tracker.isSettled(TRACE)).toBe(true);
  });

  it('is not lost while its command is under way, however silent', async () => {
    await bench.append(cutOff(RECORDS));
    for (let hour = 0; hour < 3; hour++) await bench.pass(3_600_000);
    expect(bench.listener.story).toEqual(['started']);
    await bench.append(RECORDS.slice(cutOff(RECORDS).length));
    await bench.registry.end('a', EXIT_0, Date.UTC(2030, 0));
    await bench.tracker.idle();
    expect(bench.listener.story).toEqual(['started', 'ended 1 success', 'finished']);
  });

  it('is reported again while it goes on, when a step is reported only after its first records', async () => {
    await bench.append(ofStep(cutOff(RECORDS), 'late'));
    expect(stepsTold()).toEqual([[undefined]]);
    await bench.registry.register(stepStart('late', { startedUnixMs: 0 }));
    await bench.registry.attach('late', TRACE);
    await bench.tracker.idle();
    expect(stepsTold()).toEqual([[undefined], ['late']]);
    await bench.registry.attach('late', TRACE);
    await bench.tracker.idle();
    expect(bench.listener.story).toEqual(['started', 'started']);
  });

  it('has job, step and exit code in run.json and in the log', async () => {
    bench.furtherListeners.push(new RunLog(bench.logger));
    await bench.restart();
    await bench.registry.register(stepStart('b', { job: 'nightly', environment: 'prod', startedUnixMs: 0 }));
    await bench.append(ofStep(RECORDS, 'b'));
    await bench.registry.end('b', EXIT_0, Date.UTC(2030, 0));
    await bench.tracker.idle();
    const details = { run_id: 1002, run_key: null, environment: 'prod', project: null, reason: null };
    expect(await runFile()).toMatchObject({
      job: { name: 'nightly', ...details },
      steps: [
        { verdict: 'success', step: { id: 'b', index: 1, ...details, ending: { kind: 'exited', exit_code: 0 } } },
      ],
    });
    const told = bench.logger.lines.filter(({ fields }) => fields.traceId === TRACE);
    expect(told.map(({ message }) => message)).toEqual(['a run started', 'a command ended', 'finished a run']);
    expect(told[1]?.fields).toMatchObject({ job: 'nightly', run: 1002, step: 1, exitCode: 0 });
    expect(told[2]?.fields).toMatchObject({ job: 'nightly', run: 1002, step: '1' });
  });

  it('is judged anew when its exit code comes after its verdict, even long after', async () => {
    await bench.append(RECORDS);
    await bench.pass(500);
    expect(bench.listener.story).toEqual(['started', 'ended 1 success', 'finished']);
    await bench.pass(300_000);
    await bench.registry.end('a', { kind: 'exited', exitCode: 3 }, Date.UTC(2030, 0));
    expect(await bench.tracker.isSettled(TRACE)).toBe(false);
    await bench.tracker.idle();
    expect(bench.listener.story.slice(3)).toEqual(['revised 1 error', 'finished']);
    expect(await runFile()).toMatchObject({ steps: [{ verdict: 'error', step: { ending: { exit_code: 3 } } }] });
    await bench.restart();
    expect(bench.listener.story).toEqual([]);
  });

  it('is judged after a restart where its command ended just before the process died', async () => {
    await bench.appendUnseen(cutOff(RECORDS));
    await bench.registry.end('a', SIGKILL, Date.UTC(2030, 0));
    await bench.restart(true);
    expect(bench.listener.story).toEqual(['started', 'ended 1 error', 'finished']);
  });

  it('is lost after a restart, and not silent, where the runner of its command died with it', async () => {
    await bench.append(ofStep(cutOff(RECORDS), 'a'));
    await bench.restart(true);
    expect(bench.listener.story).toEqual([]);
    await bench.pass(500);
    expect(bench.listener.story).toEqual(['ended 1 lost', 'finished']);
    expect((await bench.tracker.find(TRACE))?.invocations[0]?.statusMessage).toBe(
      'No end was seen: the program that ran the command has gone without reporting how it ended',
    );
  });
});

it('a step that only another bridge was told of is none here', async () => {
  await bench.append(ofStep(RECORDS, 'elsewhere'));
  await bench.pass(500);
  expect(bench.listener.story).toEqual(['started', 'ended 1 success', 'finished']);
  expect((await bench.tracker.find(TRACE))?.invocations[0]?.step).toBeNull();
});

describe('commands that share a trace', () => {
  const first = RECORDS;
  const second = asTrace(fromJsonl('build-mixed'), TRACE);

  it('are distinguished by their step from the first record on, and each has its own ending', async () => {
    await bench.registry.register(stepStart('a', { runKey: 'night', startedUnixMs: 0 }));
    await bench.registry.register(stepStart('b', { runKey: 'night', startedUnixMs: 0 }));
    const root = (name: string) => (logged: LoggedRecord) => logged.record.eventType.endsWith(`.${name}`);
    // Of the second command nothing came yet that says that it is one: a query below a span that never came.
    const stray = second.filter(root('QueryExecuted')).slice(0, 2);
    await bench.append([...ofStep(first.slice(0, 50), 'a'), ...ofStep(stray, 'b', { 'service.name': 'dbt-core' })]);
    expect((await bench.tracker.find(TRACE))?.invocations.map(({ step }) => step?.stepIndex)).toEqual([1, 2]);
    await bench.append([
      ...ofStep(
        second.filter((logged) => !stray.includes(logged)),
        'b',
      ),
      ...ofStep(first.slice(50), 'a'),
    ]);
    await bench.registry.end('a', EXIT_0, Date.UTC(2030, 0));
    await bench.tracker.idle();
    await bench.registry.end('b', { kind: 'exited', exitCode: 1 }, Date.UTC(2030, 0));
    await bench.tracker.idle();
    const run = await bench.tracker.find(TRACE);
    expect(run?.invocations).toMatchObject([
      { verdict: 'success', recordCount: first.length, isAmbiguous: false, step: { stepIndex: 1, ending: EXIT_0 } },
      { verdict: 'error', recordCount: second.length, isAmbiguous: false, step: { stepIndex: 2 } },
    ]);
  });

  it('belong to the step that was under way where their resource names none', async () => {
    await bench.registry.register(stepStart('a', { runKey: 'night', startedUnixMs: 0 }));
    await bench.registry.attach('a', TRACE);
    await bench.registry.end('a', EXIT_0, 1_000);
    await bench.registry.register(stepStart('b', { runKey: 'night', startedUnixMs: 2_000 }));
    await bench.registry.attach('b', TRACE);
    await bench.append(RECORDS);
    expect((await bench.tracker.find(TRACE))?.invocations[0]?.step).toMatchObject({ stepId: 'b' });
  });
});

describe('a run of an account', () => {
  beforeEach(async () => {
    await bench.registry.register(stepStart('10002/b', { accountId: 10_002, startedUnixMs: 0 }));
  });

  it('is no step of another account, even where that attached its trace to one', async () => {
    await bench.registry.attach('10002/b', TRACE);
    await bench.append(RECORDS);
    await bench.tracker.idle();
    expect((await bench.tracker.find(TRACE))?.invocations).toMatchObject([{ step: null }]);
  });

  it('is the step of its own that its resource names', async () => {
    await bench.append(
      RECORDS.map((record) => ({
        ...record,
        resource: ofAccount({ ...UNKNOWN_RESOURCE, attributes: { [STEP_ATTRIBUTE]: 'b' } }, 10_002),
      })),
    );
    await bench.tracker.idle();
    expect((await bench.tracker.find(TRACE))?.invocations).toMatchObject([{ step: { stepId: '10002/b' } }]);
  });
});
