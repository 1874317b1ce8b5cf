import type { Attributes } from '@opentelemetry/api';
import {
  ATTR_CICD_PIPELINE_RESULT,
  ATTR_CICD_PIPELINE_TASK_NAME,
  ATTR_CICD_PIPELINE_TASK_RUN_ID,
  ATTR_CICD_PIPELINE_TASK_RUN_RESULT,
  ATTR_CICD_PIPELINE_TASK_RUN_URL_FULL,
  ATTR_TEST_SUITE_NAME,
  ATTR_TEST_SUITE_RUN_STATUS,
  CICD_PIPELINE_RESULT_VALUE_CANCELLATION,
  CICD_PIPELINE_RESULT_VALUE_ERROR,
  CICD_PIPELINE_RESULT_VALUE_FAILURE,
  CICD_PIPELINE_RESULT_VALUE_SUCCESS,
  TEST_SUITE_RUN_STATUS_VALUE_ABORTED,
  TEST_SUITE_RUN_STATUS_VALUE_FAILURE,
  TEST_SUITE_RUN_STATUS_VALUE_SKIPPED,
  TEST_SUITE_RUN_STATUS_VALUE_SUCCESS,
} from '@opentelemetry/semantic-conventions/incubating';
import { type Resource, stepIdOf } from '../../record/attributes.js';
import { spanIdOf } from '../../record/span-id-table.js';
import { executesNodes } from '../../run/measures/execution.js';
import type { NodeVerdict, Verdict } from '../../run/verdict.js';
import type { ResourceMap } from '../wire/export-group.js';
import { type IdHalves, isSameId } from './mapped-record.js';
import type { SpanTree } from './span-tree.js';

/** How a command ended, as OpenTelemetry says it of a pipeline's run and of a task in it. */
const RESULTS: Readonly<Record<Verdict, string>> = {
  success: CICD_PIPELINE_RESULT_VALUE_SUCCESS,
  error: CICD_PIPELINE_RESULT_VALUE_FAILURE,
  canceled: CICD_PIPELINE_RESULT_VALUE_CANCELLATION,
  lost: CICD_PIPELINE_RESULT_VALUE_ERROR,
};

/** What became of a test, as far as a suite's status depends on it. */
const Test = { passed: 0, failed: 1, skipped: 2 } as const;
const TEST_RESULTS: Readonly<Partial<Record<NodeVerdict, number>>> = {
  success: Test.passed,
  warned: Test.passed,
  failed: Test.failed,
  error: Test.failed,
  skipped: Test.skipped,
};

/** Numbers of a test in the list of them: its NodeProcessed span, what became of it, and its package. */
const TEST = 4;

/** An engine command, as far as its own span says it. */
export interface EndedCommand {
  /** Its invocation span. */
  readonly id: IdHalves;
  readonly resource: Resource;
  /** Its first word, for example `build`; `null` where it is not known. */
  readonly word: string | null;
  readonly verdict: Verdict;
}

/** Returns the package that a test belongs to, which is its suite: `shop` for `test.shop.not_null_orders_id.1a2b3c4d5e`. */
export function testSuiteOf(uniqueId: string): string {
  const from = uniqueId.indexOf('.') + 1;
  const to = uniqueId.indexOf('.', from);
  return uniqueId.slice(from, to === -1 ? undefined : to);
}

/** Writes what OpenTelemetry's conventions say of a command: it is a task of its run, and runs the suite of its tests. */
export class CommandAttributes {
  /** See `TEST`. */
  private readonly tests: number[] = [];
  private readonly suites: string[] = [];
  private areTestsComplete = true;

  /** @param maxTests tests that are remembered; where there are more, no status of their suite is given */
  constructor(
    private readonly tree: SpanTree,
    private readonly resources: ResourceMap,
    private readonly maxTests: number,
  ) {}

  /** A test has ended. @param verdict `undefined` if unknown */
  noteTest(spanHigh: number, spanLow: number, uniqueId: string, verdict: NodeVerdict | undefined): void {
    const result = verdict === undefined ? undefined : TEST_RESULTS[verdict];
    if (result === undefined) return;
    const { tests, suites } = this;
    if (tests.length >= TEST * this.maxTests) {
      this.areTestsComplete = false;
      return;
    }
    const suite = testSuiteOf(uniqueId);
    let number = suites.indexOf(suite);
    if (number === -1) number = suites.push(suite) - 1;
    tests.push(spanHigh, spanLow, result, number);
  }

  write(command: EndedCommand, into: Attributes): void {
    const result = RESULTS[command.verdict];
    into[ATTR_CICD_PIPELINE_RESULT] = result;
    this.writeTask(command, result, into);
    this.writeSuite(command, into);
  }

  /** What the resource says already is not said again. */
  private writeTask({ id, resource, word }: EndedCommand, result: string, into: Attributes): void {
    const { resources, tree } = this;
    const { attributes } = resources.map(resource).resource;
    const stepId = stepIdOf(resource);
    if (attributes[ATTR_CICD_PIPELINE_TASK_NAME] === undefined && word !== null)
      into[ATTR_CICD_PIPELINE_TASK_NAME] = word;
    if (attributes[ATTR_CICD_PIPELINE_TASK_RUN_ID] === undefined)
      into[ATTR_CICD_PIPELINE_TASK_RUN_ID] = stepId ?? spanIdOf(id[0], id[1]);
    into[ATTR_CICD_PIPELINE_TASK_RUN_RESULT] = result;
    // Which of several commands in a trace a step is, only a resource that names it says.
    const url = stepId === null && tree.invocationCount > 1 ? undefined : resources.stepUrlOf(resource);
    if (url !== undefined) into[ATTR_CICD_PIPELINE_TASK_RUN_URL_FULL] = url;
  }

  /** The status of the tests that the command executed; none where they are of several packages. */
  private writeSuite({ id, word, verdict }: EndedCommand, into: Attributes): void {
    const { tests, tree } = this;
    if (!this.areTestsComplete || verdict === 'lost' || !executesNodes(word)) return;
    const isSole = tree.invocationCount <= 1;
    const counts = [0, 0, 0];
    let suite: number | undefined;
    for (let at = 0; at < tests.length; at += TEST) {
      if (!isSole && !this.isIn(id, tests[at] as number, tests[at + 1] as number)) continue;
      suite ??= tests[at + 3];
      if (suite !== tests[at + 3]) return;
      const result = tests[at + 2] as number;
      counts[result] = (counts[result] ?? 0) + 1;
    }
    if (suite === undefined) return;
    into[ATTR_TEST_SUITE_NAME] = this.suites[suite];
    into[ATTR_TEST_SUITE_RUN_STATUS] = statusOf(counts, verdict);
  }

  private isIn(invocation: IdHalves, high: number, low: number): boolean {
    const known = this.tree.invocationOf(high, low);
    return known !== undefined && isSameId(known, invocation);
  }
}

function statusOf(counts: readonly number[], verdict: Verdict): string {
  if (verdict === 'canceled') return TEST_SUITE_RUN_STATUS_VALUE_ABORTED;
  if ((counts[Test.failed] ?? 0) > 0) return TEST_SUITE_RUN_STATUS_VALUE_FAILURE;
  return (counts[Test.passed] ?? 0) > 0 ? TEST_SUITE_RUN_STATUS_VALUE_SUCCESS : TEST_SUITE_RUN_STATUS_VALUE_SKIPPED;
}
