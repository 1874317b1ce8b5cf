import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, it } from 'vitest';
import { type PullOptions, RunPuller, type RunPullerDeps } from '../../../src/platform/run-puller.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { MemoryConsumer } from '../../fake/memory-consumer.js';
import { SAMPLES, sampleLines, sampleTraceId } from '../../fake/sample-run.js';
import { untilTurned } from '../../tool/until.js';
import { Asking } from './asking.js';

const asking = Asking.forEachTest();
/** Ten minutes after the runs' end. */
const SOON = Date.UTC(2026, 0, 2, 10, 42);
const LATER = Date.UTC(2026, 0, 3);

function pulling(given: Partial<RunPullerDeps> & { options?: PullOptions } = {}) {
  const consumer = new MemoryConsumer();
  const { options = {}, ...deps } = given;
  const puller = new RunPuller({
    folder: asking.folder,
    maxFileBytes: 1e6,
    openConsumer: () => consumer,
    clock: new FakeClock(LATER),
    ...deps,
  });
  return { consumer, pulled: puller.pull(asking.api(), '1', options, asking.running) };
}

function outcomes({ steps }: Awaited<ReturnType<typeof pulling>['pulled']>): readonly string[] {
  return steps.map(({ outcome }) => outcome);
}

function linesOf({ deliveries }: MemoryConsumer): readonly string[] {
  return deliveries.flatMap(({ batches }) => batches.flatMap(({ records }) => records.map(formatRecordLine)));
}

describe('a run that is pulled', () => {
  it('brings the records of each step as the engine wrote them, and leaves no file behind', async () => {
    const steps = [{ name: 'Clone git repository' }, { telemetry: 'parse' }, { telemetry: 'build-mixed', status: 20 }];
    asking.server.runs = [{ id: 1, status: 20, steps }];
    const { consumer, pulled } = pulling();
    const { isFinal, ...run } = await pulled;
    expect(isFinal).toBe(true);
    expect(outcomes({ ...run, isFinal })).toEqual(['none', 'taken', 'taken']);
    expect(run.steps[1]).toMatchObject({ recordCount: 63, rejectCount: 0, traceIds: [sampleTraceId('parse')] });
    // The engine's own two files differ in the order of what threads do at the same time.
    expect(linesOf(consumer).toSorted()).toEqual([...sampleLines('parse'), ...sampleLines('build-mixed')].toSorted());
    expect(readdirSync(asking.folder)).toEqual([]);
  });

  it('carries what the platform says of it as the resource of its records', async () => {
    asking.server.runs = [{ id: 1, jobId: 9, steps: [{ telemetry: 'parse' }] }];
    const { consumer, pulled } = pulling();
    await pulled;
    expect(consumer.deliveries[0]?.batches[0]?.resource.attributes).toEqual({
      'cicd.pipeline.name': 'job 9',
      'cicd.pipeline.run.id': '1',
      'cicd.pipeline.run.url.full': `${asking.server.url}/deploy/70471823/projects/300/runs/1/`,
      'cicd.pipeline.task.name': '1',
      'cicd.pipeline.task.run.id': '101',
      'deployment.environment.name': 'Production',
      'vcs.ref.head.revision': '0123456789abcdef0123456789abcdef01234567',
      'vcs.ref.head.name': 'main',
      'run_bridge.platform.account_id': '70471823',
      'run_bridge.platform.project_id': '300',
      'run_bridge.platform.environment_id': '200',
      'run_bridge.platform.job_id': '9',
      'run_bridge.platform.run_id': '1',
      'run_bridge.platform.run_status': 'Success',
      'run_bridge.platform.step_index': 1,
    });
  });

  it('is left for later while it is not complete', async () => {
    asking.server.runs = [{ id: 1, status: 3, steps: [{ telemetry: 'parse' }] }];
    const { consumer, pulled } = pulling();
    expect(await pulled).toMatchObject({ steps: [], isFinal: false, run: { status: 'Running' } });
    expect(consumer.deliveries).toEqual([]);
  });

  it('is asked for no files where the platform kept none', async () => {
    asking.server.runs = [{ id: 1, artifactsSaved: false, steps: [{}, {}] }];
    expect(await pulling().pulled).toMatchObject({ steps: [], isFinal: true });
    expect(asking.server.paths).toEqual(['/runs/1/', '/runs/1/artifacts/']);
  });

  it('may still get its files soon after its end', async () => {
    asking.server.runs = [{ id: 1, artifactsSaved: false, steps: [{}] }];
    expect(await pulling({ clock: new FakeClock(SOON) }).pulled).toMatchObject({ isFinal: false });
    asking.server.runs = [{ id: 1, artifactsSaved: false, steps: [{ telemetry: 'parse' }] }];
    expect(await pulling({ clock: new FakeClock(SOON) }).pulled).toMatchObject({ isFinal: true });
  });

  it('takes no step that was taken before, and tells which it has taken', async () => {
    asking.server.runs = [{ id: 1, steps: [{ telemetry: 'parse' }, {}, { telemetry: 'build-clean' }] }];
    const done: number[] = [];
    const onStepDone = async (index: number) => void done.push(index);
    const { consumer, pulled } = pulling({ options: { knownSteps: [1], onStepDone } });
    expect(outcomes(await pulled)).toEqual(['known', 'none', 'taken']);
    expect(done).toEqual([3]);
    expect(linesOf(consumer)).toHaveLength(254);
  });
});

describe('a step that cannot be brought in', () => {
  it.each([
    ['no Parquet', Buffer.from('<html>sign in</html>'), /^its Parquet file cannot be read as Parquet/],
    ['empty', Buffer.alloc(0), /^its Parquet file is empty/],
    [
      'cut off',
      readFileSync(join(SAMPLES, 'parse/otel.parquet')).subarray(0, 9_000),
      /^its Parquet file cannot be read/,
    ],
  ])('because its file is %s is reported; the other steps go on', async (_, telemetry, reason) => {
    asking.server.runs = [{ id: 1, steps: [{ telemetry }, { telemetry: 'parse' }] }];
    const pulled = await pulling().pulled;
    expect(outcomes(pulled)).toEqual(['broken', 'taken']);
    expect(pulled.steps[0]?.reason).toMatch(reason);
    expect(pulled.isFinal).toBe(true);
  });

  it('to its last row is taken but for the rows that are no records, which are kept', async () => {
    const columnData = ['record_type', 'trace_id', 'event_type', 'attributes'].map((name) => ({
      name,
      data: ['nonsense', 'nonsense'],
      type: 'STRING' as const,
    }));
    const telemetry = new Uint8Array(parquetWriteBuffer({ columnData }));
    asking.server.runs = [{ id: 1, steps: [{ telemetry }] }];
    const kept: unknown[] = [];
    const rejects = { add: async (...given: unknown[]) => void kept.push(given) };
    const { steps, isFinal } = await pulling({ rejects }).pulled;
    expect([steps[0]?.outcome, steps[0]?.recordCount, steps[0]?.rejectCount, isFinal]).toEqual(['taken', 0, 2, true]);
    expect(kept).toMatchObject([['run 1 step 1', [{ place: 'row 0' }, { place: 'row 1' }]]]);
  });

  it('because it is too large is reported', async () => {
    asking.server.runs = [{ id: 1, steps: [{ telemetry: 'build-mixed' }, { telemetry: 'parse' }] }];
    const pulled = await pulling({ maxFileBytes: 50_000 }).pulled;
    expect(outcomes(pulled)).toEqual(['broken', 'taken']);
    expect(pulled.steps[0]?.reason).toMatch(/larger than 49 KiB/);
  });

  it('because the platform does not give it is tried again another time', async () => {
    asking.server.runs = [{ id: 1, steps: [{ telemetry: 'build-mixed' }, { telemetry: 'parse' }] }];
    asking.server.fault = ({ path }) => (path.includes('telemetry-1') ? { status: 500 } : undefined);
    const clock = new FakeClock(LATER);
    const pulled = await pulling({ clock }).pulled;
    expect(outcomes(pulled)).toEqual(['failed', 'taken']);
    expect(pulled.isFinal).toBe(false);
  });
});

it('waits for room before it downloads', async () => {
  const clock = new FakeClock(LATER);
  asking.server.runs = [{ id: 1, steps: [{ telemetry: 'parse' }] }];
  let isFull = true;
  const guard = {
    findShortage: () => (isFull ? { message: 'full', retryAfterMs: 5_000 } : undefined),
    onBody: () => undefined,
  };
  const { pulled } = pulling({ clock, guards: [guard] });
  await untilTurned(() => clock.nextTimerMs === 5_000);
  expect(asking.server.paths).toEqual(['/runs/1/']);
  isFull = false;
  clock.advance(5_000);
  expect(outcomes(await pulled)).toEqual(['taken']);
});
