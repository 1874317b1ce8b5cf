import type { Caller } from '../../api/caller.js';
import { type FailingSince, failingSince, type MeasuredRun } from '../../api/failing-since.js';
import { textRedactor } from '../../api/permissions.js';
import { counted, cut } from '../../core/text.js';
import { type Redactor, statusText } from '../../redaction/redactor.js';
import type { CriticalPath } from '../../run/measures/critical-path.js';
import type { FailedSql } from '../../run/measures/failed-sql.js';
import type { NodeMeasure } from '../../run/measures/node-measure.js';
import { type Pace, paceOf, sumOfParts } from '../../run/measures/pace.js';
import type { CommandMeasures } from '../../run/measures/run-totals.js';
import { slowestNodes, type TimeParts } from '../../run/measures/time-split.js';
import {
  retryCommand,
  selectCommand,
  type Trouble,
  type TroubleSection,
  troubleLocation,
  troublesOf,
} from '../../run/measures/troubles.js';
import { withDependencies } from '../../run/measures/upstream.js';
import { commandLengthMs, countVerdicts, type NodeCounts } from '../../run/verdict.js';
import type { Manifest } from '../../storage/manifest.js';
import type { CatalogRun, CatalogStep } from '../../storage/run-catalog.js';
import type { PageDeps } from './page-deps.js';

/** A failure or another problem; its texts are redacted for the visitor. */
export interface PageTrouble {
  /** The node; `null` if no node is the cause. */
  readonly uniqueId: string | null;
  /** The label, for example `model orders`; `null` if no node is the cause. */
  readonly label: string | null;
  /** The location, for example `models/orders.sql:3`; `null` if no file is known. */
  readonly location: string | null;
  /** The lines of the message, the cause first. */
  readonly cause: readonly string[];
  /** The whole message; `null` if `cause` has all of it. */
  readonly message: string | null;
  /** The failing rows of a test; `null` for others. */
  readonly failingRows: number | null;
  /** The expected and actual rows of a unit test; `null` for others. */
  readonly diffTable: string | null;
  readonly sql: FailedSql | null;
  /** Labels of the nodes that were skipped because of it. */
  readonly skipped: readonly string[];
  /** The command that runs it again; `null` if there is none. */
  readonly command: string | null;
  /** Since when it fails; `null` if unknown, or not among the first 50 failed nodes. */
  readonly since: FailingSince | null;
}

/** Troubles of one kind. */
export interface PageSection extends Pick<TroubleSection, 'title' | 'severity'> {
  readonly troubles: readonly PageTrouble[];
  /** The number of troubles that are not shown. */
  readonly omittedCount: number;
}

/** What a page shows of a run's content. */
export interface RunPageModel {
  /** Why the run failed. */
  readonly statusMessage: string | null;
  /** Why its steps failed, by step id. */
  readonly stepMessages: ReadonlyMap<number, string>;
  /** Nodes by verdict. */
  readonly counts: NodeCounts;
  /** The number of skipped nodes that had nothing to do. */
  readonly noOpCount: number;
  /** The troubles, the worst first. */
  readonly sections: readonly PageSection[];
  /** Commands that run the failed nodes again. */
  readonly retryCommands: readonly string[];
  /** Where the time of all its commands went. */
  readonly timeParts: TimeParts;
  /** What it is compared by, and its critical path; `null` if it has several commands, or none. */
  readonly pace: (Pace & { readonly path: CriticalPath }) | null;
  readonly slowest: readonly NodeMeasure[];
  /** The redactor for texts and commands. */
  readonly redactor: Pick<Redactor, 'level' | 'command'>;
  /** The totals of all its commands, and how long they took as it is shown. */
  readonly lengthNano: bigint;
  readonly lengthMs: number;
  /** Whether its telemetry still exists. */
  readonly hasTelemetry: boolean;
}

/** The most troubles of each kind that are shown. */
const MAX_TROUBLES = 100;
/** The most troubles of a kind that are shown with their SQL; the list of nodes has the SQL of the others. */
const MAX_SQL = 20;
/** The most nodes for which the start of the failures is determined. */
const MAX_SINCE = 50;
/** The longest name, and the longest line of a cause, in characters. */
export const MAX_NAME = 300;
const MAX_LINE = 2_000;
const MAX_SLOWEST = 10;

/** What the model of a run's page is read from. */
export type RunPageModelDeps = Pick<PageDeps, 'catalog' | 'measures' | 'redaction'> & {
  /** Reads the manifest that a step left; `undefined` if there is none, or the visitor may not read it. Default: there is none. */
  readonly manifestOf?: (step: CatalogStep) => Promise<Manifest | undefined>;
};

/**
 * Reads the content of a run's page; for a run in progress, from the records that have arrived.
 * @throws errors of the reader if a log cannot be read; StoreError
 */
export async function readRunPageModel(
  run: CatalogRun,
  steps: readonly CatalogStep[],
  caller: Caller,
  deps: RunPageModelDeps,
): Promise<RunPageModel> {
  const { statusMessage } = run;
  const redactor = textRedactor(caller, deps.redaction);
  const measured = await deps.measures.ofSteps(steps, redactor);
  const commands = measured.map(({ command }) => command);
  const nodes = commands.flatMap((command) => command.nodes);
  return {
    statusMessage: statusMessage === null ? null : statusText(statusMessage, redactor),
    stepMessages: new Map(
      steps.flatMap(({ id, statusMessage: message }) =>
        message === null ? [] : [[id, statusText(message, redactor)] as const],
      ),
    ),
    counts: countVerdicts(nodes),
    noOpCount: commands.reduce((sum, { totals }) => sum + totals.noOpCount, 0),
    sections: await withSince(
      { run, commands },
      measured.flatMap(({ command }) => sectionsOf(command, redactor)),
      deps,
    ),
    retryCommands: [...new Set(commands.flatMap((command) => retryCommand(command) ?? []))],
    timeParts: sumOfParts(commands.map(({ timeParts }) => timeParts)),
    pace: await paceOfRun(commands, steps, deps),
    slowest: slowestNodes(nodes, MAX_SLOWEST),
    lengthNano: commands.reduce((sum, { totals }) => sum + totals.lengthNano, 0n),
    lengthMs: commands.reduce((sum, { invocation }) => sum + commandLengthMs(invocation), 0),
    hasTelemetry: commands.length > 0,
    redactor,
  };
}

async function paceOfRun(
  [command, ...others]: readonly CommandMeasures[],
  steps: readonly CatalogStep[],
  { manifestOf }: RunPageModelDeps,
): Promise<RunPageModel['pace']> {
  const step = steps.find(({ invocations }) => invocations.length > 0);
  if (command === undefined || step === undefined || others.length > 0) return null;
  const manifest = await manifestOf?.(step);
  const measured = manifest === undefined ? command : withDependencies(command, manifest);
  return { ...paceOf(measured), path: measured.criticalPath };
}

/**
 * Reads the trouble of a node in a run; `null` if there is none. Texts are redacted for the visitor.
 * @throws StoreError
 */
export async function readNodeTrouble(
  node: NodeMeasure,
  {
    run,
    steps,
    command,
    redactor,
  }: {
    readonly run: CatalogRun;
    /** All steps of the run. */
    readonly steps: readonly CatalogStep[];
    readonly command: CommandMeasures;
    readonly redactor: Redactor;
  },
  deps: RunPageModelDeps,
): Promise<PageTrouble | null> {
  const of = { ...command, hooks: [], messages: [] };
  const skipped = command.nodes.filter(({ skipUpstream }) => skipUpstream !== null);
  const alone = { ...of, nodes: [node, ...skipped.filter((one) => one !== node)] };
  const sections = sectionsOf(alone, redactor).map((section) => ({
    ...section,
    troubles: section.troubles.filter(({ uniqueId }) => uniqueId === node.uniqueId),
  }));
  const commands = sections.every(({ troubles }) => troubles.length === 0)
    ? []
    : (await deps.measures.ofSteps(steps)).map((one) => one.command);
  const [trouble = null] = (await withSince({ run, commands }, sections, deps)).flatMap(({ troubles }) => troubles);
  return trouble;
}

/** Determines since when nodes fail, for the first 50 failed nodes that were executed. */
async function withSince(
  measured: MeasuredRun,
  sections: readonly PageSection[],
  deps: RunPageModelDeps,
): Promise<readonly PageSection[]> {
  const failed = sections.filter(({ severity }) => severity === 'error');
  const executed = new Set(
    measured.commands.flatMap(({ nodes }) => nodes.flatMap((node) => (node.isExecuted ? [node.uniqueId] : []))),
  );
  const uniqueIds = failed
    .flatMap(({ troubles }) => troubles.flatMap(({ uniqueId }) => uniqueId ?? []))
    .filter((uniqueId) => executed.has(uniqueId));
  const { nodes: found } = await failingSince(measured, uniqueIds.slice(0, MAX_SINCE), deps);
  if (found.size === 0) return sections;
  return sections.map((section) => ({
    ...section,
    troubles: section.troubles.map((trouble) => ({ ...trouble, since: found.get(trouble.uniqueId ?? '') ?? null })),
  }));
}

function sectionsOf(command: CommandMeasures, redactor: Redactor): readonly PageSection[] {
  // In a command that is in progress, an unfinished node is no trouble.
  const isOver = command.invocation.verdict !== null;
  const nodes = isOver ? command.nodes : command.nodes.filter(({ verdict }) => verdict !== 'unfinished');
  const shown = troublesOf({
    ...command,
    nodes: redactor.level === 'off' ? nodes : nodes.map((node) => redactedNode(node, redactor)),
    hooks: command.hooks.map((hook) => ({ ...hook, message: hook.message && redactor.text(hook.message) })),
    messages: command.messages.map((message) => redactor.text(message)),
  });
  // Locations are read from the original texts; in redacted ones, line numbers are missing.
  const whole = redactor.level === 'off' ? shown : troublesOf({ ...command, nodes });
  return shown.map(({ title, severity, troubles }, at) => ({
    ...{
      title: isBeforeNodes(troubles, nodes) ? `Nothing ran: ${counted(troubles.length, 'error')}` : title,
      severity,
    },
    troubles: troubles.slice(0, MAX_TROUBLES).map((trouble, index) => ({
      ...pageTrouble(trouble, index < MAX_SQL),
      location: locationOf(whole[at]?.troubles[index], redactor),
      since: null,
      command: trouble.node === null ? null : selectCommand(command.invocation, [trouble.node]),
    })),
    omittedCount: Math.max(0, troubles.length - MAX_TROUBLES),
  }));
}

/** Whether a failure is not about a node, and no node was started. */
function isBeforeNodes(troubles: readonly Trouble[], nodes: readonly NodeMeasure[]): boolean {
  return nodes.length === 0 && troubles.every(({ node, label }) => node === null && label === null);
}

function locationOf(trouble: Trouble | undefined, redactor: Redactor): string | null {
  const location = trouble === undefined ? null : troubleLocation(trouble);
  return location === null ? null : redactor.byPolicy('name', cut(location, MAX_NAME));
}

/** Lines that the SQL beside them repeats. */
const QUOTED_LINE = /^LINE [\d?]+:/;

function pageTrouble(
  { label, node, reason, skipped }: Trouble,
  hasSql: boolean,
): Omit<PageTrouble, 'location' | 'command' | 'since'> {
  const sql = hasSql ? (node?.failedSql ?? null) : null;
  const lines = node?.diffTable == null ? reason : reason.slice(0, 1);
  const cause = sql?.errorLine == null ? lines : lines.filter((line) => !QUOTED_LINE.test(line));
  const message = node?.message?.trim() ?? null;
  return {
    uniqueId: node?.uniqueId ?? null,
    label: label === null ? null : cut(label, MAX_NAME),
    cause: cause.map((line) => cut(line, MAX_LINE)),
    sql,
    skipped: skipped.map((one) => cut(one, MAX_NAME)),
    message: message === null || message === reason.join('\n') ? null : message,
    failingRows: node?.failingRows ?? null,
    diffTable: node?.diffTable ?? null,
  };
}

/** Returns a node with its texts redacted for visitors who may not read artifacts. */
function redactedNode(node: NodeMeasure, redactor: Redactor): NodeMeasure {
  const { message, diffTable, failedSql } = node;
  if (message === null && diffTable === null && failedSql === null) return node;
  return {
    ...node,
    message: message === null ? null : redactor.text(message),
    diffTable: diffTable === null ? null : redactor.diffTable(diffTable),
    failedSql: failedSql === null ? null : redactedSql(failedSql, redactor),
  };
}

/** Returns the SQL of a node; `null` if no SQL may be shown. The line is not marked if it may be a different one. */
function redactedSql(sql: FailedSql, redactor: Redactor): FailedSql | null {
  const { text } = redactor.sql(sql.text);
  if (text === undefined) return null;
  const isSameLines = text.split('\n').length === sql.text.split('\n').length;
  return { ...sql, text, errorLine: isSameLines ? sql.errorLine : null };
}
