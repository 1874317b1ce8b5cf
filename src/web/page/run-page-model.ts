import type { Caller } from '../../api/caller.js';
import type { StepMeasures } from '../../api/run-measures.js';
import { textRedactor } from '../../api/text-redactor.js';
import { cut } from '../../core/text.js';
import { type Redactor, statusText } from '../../redaction/redactor.js';
import type { FailedSql } from '../../run/measures/failed-sql.js';
import type { NodeMeasure } from '../../run/measures/node-measure.js';
import { type CommandMeasures, slowestNodes } from '../../run/measures/run-totals.js';
import {
  retryCommand,
  selectCommand,
  type Trouble,
  type TroubleSection,
  troubleLocation,
  troublesOf,
} from '../../run/measures/troubles.js';
import { countVerdicts, type NodeCounts } from '../../run/verdict.js';
import type { CatalogRun, CatalogStep } from '../../storage/run-catalog.js';
import type { PageDeps } from './page-deps.js';

/** Something that did not go well; texts as the visitor may see them. */
export interface PageTrouble {
  /** `null` where no node is the cause. */
  readonly uniqueId: string | null;
  /** `model orders`; `null` where no node is the cause. */
  readonly label: string | null;
  /** `models/orders.sql:3`; `null` where no file is known. */
  readonly place: string | null;
  /** Why, the cause first, in lines. */
  readonly cause: readonly string[];
  /** The whole message; `null` where the cause is all of it. */
  readonly message: string | null;
  /** Of a test; `null` for others. */
  readonly failingRows: number | null;
  /** Of a unit test: expected and actual rows; `null` for others. */
  readonly diffTable: string | null;
  readonly sql: FailedSql | null;
  /** Labels of the nodes that were skipped because of it. */
  readonly skipped: readonly string[];
  /** The command that runs it again; `null` where there is none. */
  readonly command: string | null;
}

/** Troubles of one kind. */
export interface PageSection extends Pick<TroubleSection, 'title' | 'severity'> {
  readonly troubles: readonly PageTrouble[];
  /** Those that are not shown. */
  readonly omittedCount: number;
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
  /** What did not go well, the worst first. */
  readonly sections: readonly PageSection[];
  /** Commands that run again what failed. */
  readonly retryCommands: readonly string[];
  readonly slowest: readonly NodeMeasure[];
  /** Names of the nodes that have begun and not ended; of a run under way. */
  readonly running: readonly NodeMeasure[];
  /** What the visitor is shown of texts and commands. */
  readonly redactor: Pick<Redactor, 'level' | 'command'>;
  /** Of all its commands together. */
  readonly lengthNano: bigint;
  /** Whether its telemetry still exists. */
  readonly hasTelemetry: boolean;
}

/** What is shown of each kind. */
const MAX_TROUBLES = 100;
/** Troubles of a kind that have their SQL; further ones are read about in the list of nodes. */
const MAX_SQL = 20;
/** The longest name, and the longest line of a cause, in characters. */
export const MAX_NAME = 300;
const MAX_LINE = 2_000;
const MAX_SLOWEST = 10;
const MAX_RUNNING = 5;

/**
 * Reads the content of a run's page, of a run under way as far as its records have arrived.
 * @throws errors of the reader if a log cannot be read
 */
export async function readRunPageModel(
  { statusMessage }: Pick<CatalogRun, 'statusMessage'>,
  steps: readonly CatalogStep[],
  caller: Caller,
  deps: Pick<PageDeps, 'measures' | 'redaction'>,
): Promise<RunPageModel> {
  const redactor = textRedactor(caller, deps.redaction);
  const measured = await deps.measures.ofSteps(steps, redactor);
  const commands = measured.map(({ command }) => command);
  const nodes = commands.flatMap((command) => command.nodes);
  return {
    statusMessage: statusMessage === null ? null : statusText(statusMessage, redactor),
    stepMessages: new Map(
      steps.flatMap(({ id, statusMessage: said }) =>
        said === null ? [] : [[id, statusText(said, redactor)] as const],
      ),
    ),
    counts: countVerdicts(nodes),
    noOpCount: commands.reduce((sum, { totals }) => sum + totals.noOpCount, 0),
    sections: measured.flatMap((one) => sectionsOf(one, redactor)),
    retryCommands: [...new Set(commands.flatMap((command) => retryCommand(command) ?? []))],
    slowest: slowestNodes(nodes, MAX_SLOWEST),
    running: nodes.filter(({ verdict }) => verdict === 'unfinished').slice(0, MAX_RUNNING),
    lengthNano: commands.reduce((sum, { totals }) => sum + totals.lengthNano, 0n),
    hasTelemetry: commands.length > 0,
    redactor,
  };
}

/** What went wrong with a node; `null` if nothing did. Texts as the visitor may see them. */
export function troubleOfNode(node: NodeMeasure, command: CommandMeasures, redactor: Redactor): PageTrouble | null {
  const of = { ...command, hooks: [], messages: [] };
  const skipped = command.nodes.filter(({ skipUpstream }) => skipUpstream !== null);
  const alone = { ...of, nodes: [node, ...skipped.filter((one) => one !== node)] };
  const sections = sectionsOf({ command: alone }, redactor);
  const isIt = ({ uniqueId }: PageTrouble) => uniqueId === node.uniqueId;
  return sections.flatMap(({ troubles }) => troubles).find(isIt) ?? null;
}

function sectionsOf({ command }: Pick<StepMeasures, 'command'>, redactor: Redactor): readonly PageSection[] {
  // Of a command under way, what has not ended is no trouble.
  const isOver = command.invocation.verdict !== null;
  const nodes = isOver ? command.nodes : command.nodes.filter(({ verdict }) => verdict !== 'unfinished');
  const shown = troublesOf({
    ...command,
    nodes: redactor.level === 'off' ? nodes : nodes.map((node) => redactedNode(node, redactor)),
    messages: command.messages.map((message) => redactor.text(message)),
  });
  // Places are read from the texts as they are: in the others, lines are values.
  const whole = redactor.level === 'off' ? shown : troublesOf({ ...command, nodes });
  return shown.map(({ title, severity, troubles }, at) => ({
    ...{ title, severity },
    troubles: troubles.slice(0, MAX_TROUBLES).map((trouble, index) => ({
      ...pageTrouble(trouble, index < MAX_SQL),
      place: placeOf(whole[at]?.troubles[index], redactor),
      command: trouble.node === null ? null : selectCommand(command.invocation, [trouble.node]),
    })),
    omittedCount: Math.max(0, troubles.length - MAX_TROUBLES),
  }));
}

function placeOf(trouble: Trouble | undefined, redactor: Redactor): string | null {
  const place = trouble === undefined ? null : troubleLocation(trouble);
  return place === null ? null : redactor.byPolicy('name', cut(place, MAX_NAME));
}

/** Lines that the SQL beside them repeats. */
const QUOTED_LINE = /^LINE [\d?]+:/;

function pageTrouble(
  { label, node, reason, skipped }: Trouble,
  hasSql: boolean,
): Omit<PageTrouble, 'place' | 'command'> {
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

/** A node with its texts as somebody may see them who may not read artifacts. */
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

/** `null` where no SQL may be shown. The line is not marked where it may be another one. */
function redactedSql(sql: FailedSql, redactor: Redactor): FailedSql | null {
  const { text } = redactor.sql(sql.text);
  if (text === undefined) return null;
  const isSameLines = text.split('\n').length === sql.text.split('\n').length;
  return { ...sql, text, errorLine: isSameLines ? sql.errorLine : null };
}
