import { join } from 'node:path';
import { expect, it } from 'vitest';
import { HostedSteps } from '../../../src/platform/hosted-steps.js';
import { RunPuller } from '../../../src/platform/run-puller.js';
import { LocalStepRegistry } from '../../../src/run/local-step-registry.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { MemoryConsumer } from '../../fake/memory-consumer.js';
import { sampleTraceId } from '../../fake/sample-run.js';
import { Asking } from './asking.js';

const asking = Asking.forEachTest();

it('a hosted run is in the registry with all of its steps, their commands, ends and traces; once, however often it is pulled', async () => {
  asking.server.runs = [
    {
      id: 1,
      status: 20,
      steps: [
        { name: 'Clone git repository' },
        { telemetry: 'build-mixed', status: 20 },
        { name: 'Invoke dbt with `dbt docs generate`', status: 30 },
        { status: 1 },
      ],
    },
  ];
  const state = await openFreshState(join(asking.folder, 'state.db'));
  const clock = new FakeClock(Date.UTC(2026, 0, 3));
  const { executions: store, runs } = state;
  const registry = new LocalStepRegistry({ store, runs, listeners: [], clock, logger: asking.logger });
  const consumer = new MemoryConsumer();
  const deps = { folder: asking.folder, maxFileBytes: 1e6, openConsumer: () => consumer, clock };
  const puller = new RunPuller({ ...deps, steps: new HostedSteps(registry, 'https://platform.example') });
  for (let times = 0; times < 2; times++) await puller.pull(asking.api(), '1', {}, asking.running);
  const [step] = await store.stepsOf(sampleTraceId('build-mixed'));
  const steps = await store.listSteps(step?.run.runId ?? 0);
  expect(steps.map(({ stepIndex, command, ending }) => [stepIndex, command, ending])).toEqual([
    [1, ['Clone git repository'], { kind: 'exited', exitCode: 0 }],
    [2, ['dbt build'], { kind: 'exited', exitCode: 1 }],
    [3, ['dbt docs generate'], { kind: 'killed', signal: 'SIGTERM' }],
    [4, ['dbt build'], { kind: 'notStarted', reason: 'the platform did not run it' }],
  ]);
  expect(step?.run).toMatchObject({
    runKey: 'platform.example/70471823/1',
    job: 'job 1',
    environment: 'Production',
    project: '300',
    reason: 'scheduled',
    state: 'finished',
    stepCount: 4,
  });
  expect(consumer.deliveries[0]?.batches[0]?.resource.attributes['run_bridge.step.id']).toBe(step?.stepId);
  expect(await store.listRunning()).toEqual([]);
  await state.close();
});
