import { expect, it } from 'vitest';
import { parseTraceId } from '../../../src/record/ids.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/resource.js';
import { CommandSteps } from '../../../src/source/command-steps.js';
import { stepStart } from '../../contract/execution-book.contract.js';

/** Records of a trace. @param stepId that their resource names */
function batch(number: number, stepId = 's') {
  const traceId = parseTraceId(String(number).padEnd(32, 'a'));
  if (traceId === undefined) throw new Error(`${number} makes no trace id`);
  return { traceId, resource: { ...UNKNOWN_RESOURCE, attributes: { 'run_bridge.step.id': stepId } }, records: [] };
}

/** What happened, in order. */
function tracked() {
  const happened: string[] = [];
  const book = {
    async begin({ stepId, runOf }: { readonly stepId: string; readonly runOf?: string }) {
      happened.push(`${stepId} begins, of the run of ${runOf}`);
      return { runId: 1, stepIndex: 1, job: 'adhoc' };
    },
    async attach() {},
    async end(stepId: string, { kind }: { readonly kind: string }) {
      happened.push(`${stepId} ends: ${kind}`);
    },
  };
  const consumer = {
    async consume({ batches }: { readonly batches: readonly ReturnType<typeof batch>[] }) {
      for (const { traceId, resource } of batches) {
        happened.push(`${traceId[0]} of ${resource.attributes['run_bridge.step.id']}`);
      }
    },
  };
  const steps = new CommandSteps(async () => ({ consumer: consumer as never, book }), stepStart('s', {}));
  return { happened, book, steps };
}

it('makes the second trace of a command a step of the same run, told before its records, which name it', async () => {
  const { happened, book, steps } = tracked();
  await steps.consume({ batches: [batch(1)], foreign: [] });
  await steps.consume({ batches: [batch(2), batch(1)], foreign: [] });
  await steps.consume({ batches: [batch(2)], foreign: [] });
  const second = 's.2aaaaaaaaaaaaaaa';
  expect(happened).toEqual([
    '1 of s',
    `${second} begins, of the run of s`,
    `2 of ${second}`,
    '1 of s',
    `2 of ${second}`,
  ]);
  happened.length = 0;
  await steps.end(book, { kind: 'exited', exitCode: 0 }, 2_000);
  expect(happened).toEqual([`${second} begins, of the run of s`, 's ends: within', `${second} ends: exited`]);
});

it('leaves records alone that name a step of another command, and ends a command without any', async () => {
  const { happened, book, steps } = tracked();
  await steps.consume({ batches: [batch(1, 'other')], foreign: [] });
  await steps.end(book, { kind: 'exited', exitCode: 0 }, 2_000);
  expect([happened, steps.steps]).toEqual([['1 of other', 's ends: exited'], []]);
});
