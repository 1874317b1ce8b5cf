import { expect, it } from 'vitest';
import { AttachingConsumer } from '../../../src/exec/command-steps.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import { parseTraceId } from '../../../src/record/telemetry-record.js';
import { StepRegistryError } from '../../../src/run/step-registry.js';

/** Records of a trace. @param stepId that their resource names */
function batch(number: number, stepId?: string) {
  const traceId = parseTraceId(String(number).padStart(32, 'a'));
  if (traceId === undefined) throw new Error(`${number} makes no trace id`);
  const resource = { ...UNKNOWN_RESOURCE, attributes: stepId === undefined ? {} : { 'run_bridge.step.id': stepId } };
  return { traceId, resource, records: [] };
}

/** What happened, in order; the registry fails as often as is said. */
function attaching(failureCount = 0) {
  const happened: string[] = [];
  let failuresLeft = failureCount;
  const registry = {
    async attach(stepId: string, traceId: string) {
      happened.push(`${stepId} has ${traceId.at(-1)}`);
      failuresLeft -= 1;
      if (failuresLeft >= 0) throw new StepRegistryError('unavailable', 'nobody answers');
    },
  };
  const target = {
    async consume({ batches }: { readonly batches: readonly { readonly traceId: string }[] }) {
      happened.push(`consumed ${batches.map(({ traceId }) => traceId.at(-1))}`);
    },
  };
  return { happened, consumer: new AttachingConsumer(target, registry, 's') };
}

it('says whose each trace is before its records, once, unless they say it themselves', async () => {
  const { happened, consumer } = attaching();
  await consumer.consume({ batches: [batch(1), batch(2, 's')], foreign: [] });
  await consumer.consume({ batches: [batch(1), batch(3)], foreign: [] });
  expect(happened).toEqual(['s has 1', 'consumed 1,2', 's has 3', 'consumed 1,3']);
});

it('says it at the end of every trace of which it was not said before', async () => {
  const { happened, consumer } = attaching();
  await consumer.consume({ batches: [batch(1), batch(2, 's')], foreign: [] });
  await consumer.attach([batch(1).traceId, batch(2).traceId]);
  expect(happened).toEqual(['s has 1', 'consumed 1,2', 's has 2']);
});

it('hands records over where that cannot be said, and says it with the next ones', async () => {
  const { happened, consumer } = attaching(1);
  for (let times = 0; times < 3; times += 1) await consumer.consume({ batches: [batch(1)], foreign: [] });
  expect(happened).toEqual(['s has 1', 'consumed 1', 's has 1', 'consumed 1', 'consumed 1']);
});

it('says at the end that it could not be said', async () => {
  const { consumer } = attaching(1);
  await expect(consumer.attach([batch(1).traceId])).rejects.toThrow('nobody answers');
});
