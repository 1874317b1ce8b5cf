import type { Caller } from '../../api/caller.js';
import type { StepMeasures } from '../../api/run-measures.js';
import { textRedactor } from '../../api/text-redactor.js';
import { type Redactor, statusText } from '../../redaction/redactor.js';
import type { NodeMeasure } from '../../run/measures/node-measure.js';
import { slowestNodes } from '../../run/measures/run-totals.js';
import { countVerdicts, hasOwnWord, type NodeCounts, type NodeVerdict } from '../../run/verdict.js';
import type { CatalogRun, CatalogStep } from '../../storage/run-catalog.js';
import type { PageDeps } from './page-deps.js';

/** A part of a list, and how many were left out. */
export interface Some<Item> {
  readonly items: readonly Item[];
  readonly omittedCount: number;
}

/** A node that did not do well; texts as the visitor may see them. */
export interface TroubledNode {
  readonly uniqueId: string;
  /** Empty if unknown. */
  readonly message: string;
  /** Of a test; `null` where it did not count. */
  readonly failingRows: number | null;
  /** Of a unit test: expected and actual rows; `null` for others. */
  readonly diffTable: string | null;
}

/** A source that is older than it may be. */
export interface StaleSource {
  readonly uniqueId: string;
  /** `null` if the engine could not determine it. */
  readonly ageSeconds: number | null;
  /** Past the limit for an error, and not only for a warning. */
  readonly isFailed: boolean;
}

/** A node that was not run, and for what. */
export interface SkippedNode {
  readonly uniqueId: string;
  /** Such as `upstream`. */
  readonly reason: string | null;
  readonly upstream: string | null;
}

/** What a page shows of the inside of a run. */
export interface RunPageModel {
  /** Why it did not end well. */
  readonly statusMessage: string | null;
  /** The same of steps, by their ids. */
  readonly stepMessages: ReadonlyMap<number, string>;
  /** Nodes by verdict. */
  readonly counts: NodeCounts;
  /** Skipped nodes for which there was nothing to do. */
  readonly noOpCount: number;
  readonly errors: Some<TroubledNode>;
  readonly failedTests: Some<TroubledNode>;
  /** Sources past one of their limits. */
  readonly staleSources: Some<StaleSource>;
  /** Nodes with an outcome that this version does not know, with the engine's word for it as the reason. */
  readonly otherOutcomes: Some<SkippedNode>;
  readonly skipped: Some<SkippedNode>;
  /** Errors that name no node. */
  readonly messages: readonly string[];
  readonly slowest: readonly NodeMeasure[];
  /** What the visitor is shown of texts and commands. */
  readonly redactor: Pick<Redactor, 'level' | 'command'>;
  /** Of all its commands together. */
  readonly lengthNano: bigint;
  /** Whether its telemetry still exists. */
  readonly hasTelemetry: boolean;
}

/** What is shown of each kind. */
const MAX_TROUBLES = 100;
const MAX_SKIPPED = 200;
const MAX_SLOWEST = 10;

/**
 * Reads the content of a run's page, of a run under way as far as its records have arrived.
 * @throws errors of the reader if a log cannot be read
 */
export async function readRunPageModel(
  run: CatalogRun,
  steps: readonly CatalogStep[],
  caller: Caller,
  deps: Pick<PageDeps, 'measures' | 'redaction'>,
): Promise<RunPageModel> {
  const redactor = textRedactor(caller, deps.redaction);
  const measured = await deps.measures.ofSteps(steps, redactor);
  return runPageModel(run, steps, measured, redactor);
}

function runPageModel(
  { statusMessage }: CatalogRun,
  steps: readonly CatalogStep[],
  measured: readonly StepMeasures[],
  redactor: Redactor,
): RunPageModel {
  const commands = measured.map(({ command }) => command);
  const nodes = commands.flatMap((command) => command.nodes);
  const having = (verdict: NodeVerdict) => nodes.filter((node) => node.verdict === verdict);
  const stale = nodes.filter(({ verdict, freshness }) => freshness !== null && verdict !== 'success');
  const failedTests = having('failed').filter(({ freshness }) => freshness === null);
  const skipped = having('skipped').filter(({ skipReason }) => skipReason !== 'noop');
  const troubled = (node: NodeMeasure) => troubledNode(node, redactor);
  return {
    statusMessage: statusMessage === null ? null : statusText(statusMessage, redactor),
    stepMessages: new Map(
      steps.flatMap(({ id, statusMessage: said }) =>
        said === null ? [] : [[id, statusText(said, redactor)] as const],
      ),
    ),
    counts: countVerdicts(nodes),
    noOpCount: commands.reduce((sum, { totals }) => sum + totals.noOpCount, 0),
    errors: some(having('error'), MAX_TROUBLES, troubled),
    failedTests: some(failedTests, MAX_TROUBLES, troubled),
    staleSources: some(stale, MAX_TROUBLES, staleSource),
    otherOutcomes: some(nodes.filter(hasOwnWord), MAX_TROUBLES, ({ uniqueId, verdict }) => ({
      uniqueId,
      reason: verdict,
      upstream: null,
    })),
    skipped: some(skipped, MAX_SKIPPED, skippedNode),
    messages: commands.flatMap((command) => command.messages).map((message) => redactor.text(message)),
    slowest: slowestNodes(nodes, MAX_SLOWEST),
    lengthNano: commands.reduce((sum, { totals }) => sum + totals.lengthNano, 0n),
    hasTelemetry: commands.length > 0,
    redactor,
  };
}

function troubledNode({ uniqueId, message, failingRows, diffTable }: NodeMeasure, redactor: Redactor): TroubledNode {
  return {
    ...{ uniqueId, failingRows },
    message: redactor.text(message ?? ''),
    diffTable: diffTable === null ? null : redactor.diffTable(diffTable),
  };
}

function staleSource({ uniqueId, verdict, freshness }: NodeMeasure): StaleSource {
  return { uniqueId, ageSeconds: freshness?.ageSeconds ?? null, isFailed: verdict === 'failed' };
}

function skippedNode({ uniqueId, skipReason, skipUpstream }: NodeMeasure): SkippedNode {
  return { uniqueId, reason: skipReason, upstream: skipUpstream };
}

function some<From, To>(all: readonly From[], limit: number, toShown: (one: From) => To): Some<To> {
  return { items: all.slice(0, limit).map(toShown), omittedCount: Math.max(0, all.length - limit) };
}
