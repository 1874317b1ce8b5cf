import { failingSince, sinceTexts } from '../api/failing-since.js';
import type { RunMeasures } from '../api/run-measures.js';
import { ageText, counted, cut } from '../core/text.js';
import type { RecordLogReader } from '../log/record-log.js';
import { toUnixMs } from '../record/telemetry-record.js';
import { type RedactionLevel, redactionFor, TextCache } from '../redaction/known-names.js';
import { learnNames, Redactor, statusText } from '../redaction/redactor.js';
import { isBad } from '../run/measures/execution.js';
import type { HookMeasure, NodeMeasure } from '../run/measures/node-measure.js';
import { sumOfParts, timeSentence } from '../run/measures/pace.js';
import type { CommandMeasures } from '../run/measures/run-totals.js';
import { causeFirst, labelOf, retryCommand, skippedByCause, withLoneMessage } from '../run/measures/troubles.js';
import { countVerdicts, hasOwnWord, type NodeCounts, type NodeVerdict } from '../run/verdict.js';
import type { Manifest, ManifestRun } from '../storage/manifest.js';
import type { CatalogStep, RunCatalog } from '../storage/run-catalog.js';

/** A node that failed, or had another outcome worth a message, and the reason. */
export interface NodeTrouble {
  /** Such as `model.shop.orders`. */
  readonly uniqueId: string;
  /** Its type and name, such as `model orders`. */
  readonly label: string;
  /** The file that defines it, and the line in it; `null` where the telemetry has none. */
  readonly path: string | null;
  readonly line: number | null;
  readonly verdict: NodeVerdict;
  /** Its group by the telemetry; `null` if it has none. */
  readonly group: string | null;
  /** Since when it fails, in words; `null` for others, where that is since the run does, and where it is not known. */
  readonly since: string | null;
  /** The error's text, redacted; of a failed test how many rows fail, of a stale source its age; empty if unknown. */
  readonly reason: string;
}

/** Nodes that were skipped because another one failed. */
export interface SkippedNodes {
  /** Type and name of the node that failed. */
  readonly causeLabel: string;
  /** The first of them. */
  readonly labels: readonly string[];
  /** All of them. */
  readonly count: number;
}

/** The lists of nodes and texts in the details of a run. */
export const DETAIL_LISTS = [
  'errors',
  'otherErrors',
  'failedTests',
  'staleSources',
  'otherOutcomes',
  'warnings',
  'skipped',
] as const;
export type DetailList = (typeof DETAIL_LISTS)[number];

/** The details of a run that a message adds to its event. Each list has the first ten. */
export interface RunDetails {
  /** Its engine commands as they were typed, and those that run again what failed; without what may be secret. */
  readonly commands: readonly string[];
  readonly retryCommands: readonly string[];
  /** Since when it fails, in words; `null` if it did not fail, and where that is not known. */
  readonly since: string | null;
  /** Who owns the nodes that failed or warn, by the manifest, else their groups; the first five. */
  readonly owners: readonly string[];
  /** Where its time went, in words; empty if nothing is known of it. */
  readonly time: string;
  /** When its first engine command began, by its telemetry: from then on it is counted how long it took; `null` if there is none. */
  readonly startedUnixMs: number | null;
  /** Nodes by verdict, of all its commands. */
  readonly counts: NodeCounts;
  /** Those of the skipped ones for which there was nothing to do. */
  readonly noOpCount: number;
  /** Those that failed with an error. */
  readonly errors: readonly NodeTrouble[];
  /** Errors that name no node, of parsing and compiling among them, redacted. */
  readonly otherErrors: readonly string[];
  /** Tests that failed, with counts of rows. */
  readonly failedTests: readonly NodeTrouble[];
  /** Sources that are older than their limit for an error, with their age. */
  readonly staleSources: readonly NodeTrouble[];
  /** Nodes with an outcome that this version does not know, with the engine's word for it. */
  readonly otherOutcomes: readonly NodeTrouble[];
  /** Tests and sources that warn, with counts of rows or age. */
  readonly warnings: readonly NodeTrouble[];
  /** By the node that failed. */
  readonly skipped: readonly SkippedNodes[];
  /** Nodes that were skipped because others failed. */
  readonly skippedCount: number;
  /** How many each list leaves out. */
  readonly omitted: Readonly<Record<DetailList, number>>;
  /** Warnings that the engine counted beside those of nodes: they stand in its log. */
  readonly loggedWarningCount: number;
  /** Why the run did not end well, redacted. */
  readonly statusMessage: string | null;
  /** The page of the run; `null` if unknown. */
  readonly url: string | null;
}

/** The nodes of a run by which subscriptions are selected. */
export interface RunNodes {
  /** Nodes with an error, failed tests and stale sources. */
  readonly failed: readonly NodeMeasure[];
  /** Tests and sources that warn. */
  readonly warned: readonly NodeMeasure[];
  /** Errors that name no node, as the engine wrote them: not redacted. */
  readonly otherErrors: readonly string[];
}

/** Which part of a run's details is read. */
export interface DetailsScope {
  /** Failed and warned nodes; all of them if left out. */
  readonly nodeIds?: readonly string[];
  /** How many of each list; ten if left out. */
  readonly limit?: number;
}

/** What tells of a run that its telemetry does not. */
export interface RunContext {
  readonly catalog: Pick<RunCatalog, 'findRun' | 'listRuns' | 'stepsOf'>;
  readonly measures: Pick<RunMeasures, 'ofSteps' | 'digestsOf'>;
  readonly manifests: { read(run: ManifestRun): Promise<Manifest | undefined> };
}

/** What details are read from. */
export interface RunDetailsDeps {
  readonly catalog: {
    stepsOf(...of: Parameters<RunCatalog['stepsOf']>): Promise<readonly Pick<CatalogStep, 'invocations'>[]>;
  };
  readonly measures: Pick<RunMeasures, 'ofSteps'>;
  /** What is known besides the run's own telemetry: earlier runs, and who owns nodes. Default: nothing. */
  readonly context?: RunContext;
  readonly reader: Pick<RecordLogReader, 'read'>;
  readonly redaction: RedactionLevel;
  /** Where others reach the web port; `null` where it is not served. */
  readonly webUrl: () => string | null;
}

/** Nodes of each kind that a message names. */
const MAX_NAMED = 10;
/** A reason is cut here, in characters, and earlier where those of its kind would have more than the second together. */
const MAX_REASON_LENGTH = 2_000;
const MAX_REASONS_LENGTH = 5_000;
/** Where more are asked for than messages name, each has so much room. */
const ROOM_OF_EACH = MAX_REASONS_LENGTH / MAX_NAMED;
/** Nodes of which it is looked up since when they fail, and owners that a message names. */
const MAX_SINCE = 50;
const MAX_OWNERS = 5;
/** Status messages that are remembered, in UTF-16 units of their keys, and the longest of those. */
const MESSAGES_LENGTH = 256 * 1024;
const MAX_MESSAGE_LENGTH = 4_096;

/** Reads the details of a run for messages from its record logs, as far as they have arrived. Texts are redacted as in exports, with the names in the run's records. */
export class RunDetailsReader {
  /** By run and message: a list of events asks for many at once, and again when it is reloaded. */
  private readonly statusMessages = new TextCache<string>(MESSAGES_LENGTH, MAX_MESSAGE_LENGTH);

  constructor(private readonly deps: RunDetailsDeps) {}

  /** @param statusMessage the event's reason for the run's failure */
  async read(
    accountId: number,
    runId: number,
    statusMessage: string | null,
    { nodeIds, limit = MAX_NAMED }: DetailsScope = {},
  ): Promise<RunDetails> {
    const redactor = this.newRedactor();
    const commands = await this.commandsOf(accountId, runId, redactor);
    const nodes = commands.flatMap((command) => command.nodes);
    const room = Math.max(MAX_REASONS_LENGTH, limit * ROOM_OF_EACH);
    const only = nodeIds === undefined ? undefined : new Set(nodeIds);
    const chosen = only === undefined ? nodes : nodes.filter(({ uniqueId }) => only.has(uniqueId));
    const bad = chosen.filter(({ verdict }) => verdict === 'failed');
    const base = this.deps.webUrl();
    const lists = {
      errors: onceEach(chosen.filter(({ verdict }) => verdict === 'error')),
      otherErrors: errorsOfNoNode(commands),
      failedTests: onceEach(bad.filter(({ freshness }) => freshness === null)),
      staleSources: onceEach(bad.filter(({ freshness }) => freshness !== null)),
      otherOutcomes: onceEach(chosen.filter(hasOwnWord)),
      warnings: onceEach(chosen.filter(({ verdict }) => verdict === 'warned')),
      skipped: skippedNodes(nodes, only),
    } satisfies Record<DetailList, readonly unknown[]>;
    const first = <T>(list: readonly T[]) => list.slice(0, limit);
    const failed = [...lists.errors, ...lists.failedTests, ...lists.staleSources];
    const context = await this.contextOf(accountId, runId, commands, { failed, warned: lists.warnings });
    const troubleOf = (node: NodeMeasure): NodeTrouble => ({
      ...identityOf(node),
      since: context.sinceOf.get(node.uniqueId) ?? null,
      reason: reasonOf(node, redactor),
    });
    const warningCount = commands.reduce((sum, { invocation }) => sum + (invocation.totalWarnings ?? 0), 0);
    const starts = commands.map(({ invocation }) => toUnixMs(invocation.startTimeUnixNano));
    return {
      commands: unique(
        commands.flatMap(({ invocation }) => invocation.rawCommand ?? []).map((line) => redactor.command(line)),
      ),
      retryCommands: unique(commands.flatMap((command) => retryCommand(command) ?? [])).map((line) =>
        redactor.command(line),
      ),
      ...{ since: context.since, owners: context.owners },
      time: timeSentence(sumOfParts(commands.map(({ timeParts }) => timeParts))),
      startedUnixMs: starts.length === 0 ? null : Math.min(...starts),
      counts: sumOfCounts(commands.map(({ totals }) => totals.nodeCounts)),
      noOpCount: commands.reduce((sum, { totals }) => sum + totals.noOpCount, 0),
      errors: shortened(first(lists.errors).map(troubleOf), room),
      otherErrors: shortenedTexts(
        first(lists.otherErrors).map((text) => causeFirst(redactor.text(text))),
        room,
      ),
      failedTests: shortened(first(lists.failedTests).map(troubleOf), room),
      staleSources: first(lists.staleSources).map(troubleOf),
      otherOutcomes: first(lists.otherOutcomes).map((node) => ({
        ...identityOf(node),
        since: null,
        reason: node.verdict,
      })),
      warnings: shortened(first(lists.warnings).map(troubleOf), room),
      skipped: first(lists.skipped),
      skippedCount: lists.skipped.reduce((sum, { count }) => sum + count, 0),
      omitted: omittedOf(lists, limit),
      loggedWarningCount: only === undefined ? Math.max(0, warningCount - lists.warnings.length) : 0,
      statusMessage: statusMessage === null ? null : cut(statusText(statusMessage, redactor), MAX_REASON_LENGTH),
      url: base === null ? null : `${base}/runs/${runId}`,
    };
  }

  /** Finds since when a run and its nodes fail, and who owns them. What cannot be read is left out: a message is not held up by it. */
  private async contextOf(
    accountId: number,
    runId: number,
    commands: readonly CommandMeasures[],
    { failed, warned }: { readonly failed: readonly NodeMeasure[]; readonly warned: readonly NodeMeasure[] },
  ): Promise<FoundContext> {
    const { context } = this.deps;
    const groups = [...failed, ...warned].flatMap(({ group }) => group ?? []);
    const nothing = { since: null, sinceOf: new Map<string, string>(), owners: unique(groups).slice(0, MAX_OWNERS) };
    if (context === undefined) return nothing;
    try {
      const run = await context.catalog.findRun(accountId, runId);
      if (run === undefined) return nothing;
      const ids = failed.filter(({ isExecuted }) => isExecuted).map(({ uniqueId }) => uniqueId);
      const since = await failingSince({ run, commands }, ids.slice(0, MAX_SINCE), context, true);
      const named = [...failed, ...warned];
      const manifest =
        named.length === 0
          ? undefined
          : await context.manifests.read({ accountId, runId, jobId: run.job.id, environmentId: run.environment.id });
      const owners = named.flatMap(({ uniqueId, group }) => {
        const known = manifest?.get(uniqueId)?.owners ?? [];
        return known.length > 0 ? known : (group ?? []);
      });
      const { run: ofRun, nodes: sinceOf } = sinceTexts(since);
      return { since: ofRun, sinceOf, owners: unique(owners).slice(0, MAX_OWNERS) };
    } catch {
      return nothing;
    }
  }

  /** Reads the nodes that failed or warn, of all commands of a run. @throws errors of the reader if a log cannot be read */
  async readNodes(accountId: number, runId: number): Promise<RunNodes> {
    const commands = await this.commandsOf(accountId, runId);
    const nodes = commands.flatMap((command) => command.nodes);
    return {
      failed: onceEach(nodes.filter(({ verdict }) => verdict === 'error' || verdict === 'failed')),
      warned: onceEach(nodes.filter(({ verdict }) => verdict === 'warned')),
      otherErrors: errorsOfNoNode(commands),
    };
  }

  /** Reads the measures of all commands of a run. @param redactor learns the names in its records */
  private async commandsOf(accountId: number, runId: number, redactor?: Redactor): Promise<readonly CommandMeasures[]> {
    const steps = await this.deps.catalog.stepsOf(accountId, [runId]);
    const measured = await this.deps.measures.ofSteps(steps, redactor);
    return measured.map(({ command }) => ({ ...command, ...withLoneMessage(command) }));
  }

  /** Reads why a run did not end well, alone. */
  async statusMessage(accountId: number, runId: number, message: string): Promise<string> {
    const key = `${accountId} ${runId} ${message}`;
    const known = this.statusMessages.get(key);
    if (known !== undefined) return known;
    const redactor = this.newRedactor();
    if (statusText(message, redactor) === message) return message;
    const steps = await this.deps.catalog.stepsOf(accountId, [runId]);
    try {
      await this.learnWordsOf(message, steps, redactor);
    } catch {
      // A log that cannot be read or is gone does not delay a message: it shows the remaining details.
      return statusText(message, redactor);
    }
    const shown = statusText(message, redactor);
    this.statusMessages.set(key, shown);
    return shown;
  }

  /** Reads the record logs of steps, only while the message has words that are not known yet. */
  private async learnWordsOf(
    message: string,
    steps: readonly Pick<CatalogStep, 'invocations'>[],
    redactor: Redactor,
  ): Promise<void> {
    const traceIds = new Set(steps.flatMap(({ invocations }) => invocations.map(({ traceId }) => traceId)));
    for (const traceId of traceIds) {
      for await (const chunk of this.deps.reader.read(traceId, { fromOffset: 0 })) {
        for (const { record } of chunk) learnNames(record, redactor);
        if (statusText(message, redactor) === message) return;
      }
    }
  }

  private newRedactor(): Redactor {
    return new Redactor(redactionFor('anybodyElse', this.deps.redaction));
  }
}

/** What a message says of a run beyond its telemetry. */
interface FoundContext extends Pick<RunDetails, 'since' | 'owners'> {
  /** By the unique ids of failed nodes. */
  readonly sinceOf: ReadonlyMap<string, string>;
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}

function shortened(troubles: readonly NodeTrouble[], allRoom: number): readonly NodeTrouble[] {
  const reasons = shortenedTexts(
    troubles.map(({ reason }) => reason),
    allRoom,
  );
  return troubles.map((trouble, index) => ({ ...trouble, reason: reasons[index] ?? '' }));
}

/** Cuts the longest: what short ones leave of the room is theirs. */
function shortenedTexts(texts: readonly string[], allRoom: number): readonly string[] {
  const lengths = texts.map(({ length }) => Math.min(length, MAX_REASON_LENGTH)).sort((a, b) => a - b);
  let limit = MAX_REASON_LENGTH;
  let room = allRoom;
  for (const [index, length] of lengths.entries()) {
    const share = Math.floor(room / (lengths.length - index));
    if (length > share) {
      limit = share;
      break;
    }
    room -= length;
  }
  return texts.map((text) => cut(text, limit));
}

function errorsOfNoNode(commands: readonly CommandMeasures[]): readonly string[] {
  return [...new Set(commands.flatMap(({ messages, hooks }) => [...messages, ...hooks.flatMap(hookError)]))];
}

/** Returns why a hook did not succeed. */
function hookError({ uniqueId, verdict, message }: HookMeasure): readonly string[] {
  return isBad(verdict) ? [message ?? `${uniqueId}: ${verdict}`] : [];
}

/** A node that failed in several commands of a run is named once. */
function onceEach(nodes: readonly NodeMeasure[]): readonly NodeMeasure[] {
  return [...new Map(nodes.map((node) => [node.uniqueId, node])).values()];
}

function omittedOf(lists: Readonly<Record<DetailList, readonly unknown[]>>, limit: number): RunDetails['omitted'] {
  const omitted = (list: DetailList) => Math.max(0, lists[list].length - limit);
  return {
    errors: omitted('errors'),
    otherErrors: omitted('otherErrors'),
    failedTests: omitted('failedTests'),
    staleSources: omitted('staleSources'),
    otherOutcomes: omitted('otherOutcomes'),
    warnings: omitted('warnings'),
    skipped: omitted('skipped'),
  };
}

function sumOfCounts(all: readonly NodeCounts[]): NodeCounts {
  const sum: Record<string, number> = { ...countVerdicts([]) };
  for (const counts of all) {
    for (const [verdict, count] of Object.entries(counts)) sum[verdict] = (sum[verdict] ?? 0) + count;
  }
  return { ...countVerdicts([]), ...sum };
}

/** Nodes that a message names of those that one failed node had skipped. */
const MAX_SKIPPED_NAMED = 5;

/** Groups skipped nodes by the node whose failure is the cause, those with most first. @param only these causes; all if left out */
function skippedNodes(nodes: readonly NodeMeasure[], only?: ReadonlySet<string>): readonly SkippedNodes[] {
  const labels = new Map(nodes.map((node) => [node.uniqueId, labelOf(node)]));
  return [...skippedByCause(nodes)]
    .filter(([cause]) => only?.has(cause) !== false)
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([cause, of]) => ({
      causeLabel: labels.get(cause) ?? cause,
      labels: of.slice(0, MAX_SKIPPED_NAMED),
      count: of.length,
    }));
}

function identityOf(node: NodeMeasure): Omit<NodeTrouble, 'reason' | 'since'> {
  const { uniqueId, relativePath: path, definedAtLine: line, verdict, group } = node;
  return { uniqueId, label: labelOf(node), path, line, verdict, group };
}

/** A test whose query failed counts as one failing row, so its message is the reason. */
function reasonOf({ freshness, failingRows, message, nodeType }: NodeMeasure, redactor: Redactor): string {
  if (freshness !== null)
    return freshness.ageSeconds === null ? '' : `last updated ${ageText(freshness.ageSeconds)} ago`;
  if (message !== null) return causeFirst(redactor.text(message));
  if (failingRows === null) return '';
  return nodeType === 'unit_test'
    ? counted(failingRows, 'row differs', 'rows differ')
    : counted(failingRows, 'failing row');
}
