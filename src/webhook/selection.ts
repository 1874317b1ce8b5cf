import { createHash } from 'node:crypto';
import { isComparable } from '../api/earlier-runs.js';
import type { RunMeasures } from '../api/run-measures.js';
import { groupBy } from '../core/lists.js';
import type { NodeMeasure } from '../run/measures/node-measure.js';
import { type JudgedRun, partialText, type Recovery, recoveryOf } from '../run/measures/recovery.js';
import type { CommandScope } from '../run/measures/run-scope.js';
import { nameOf } from '../run/measures/troubles.js';
import {
  isTestId,
  type Manifest,
  type ManifestNode,
  type ManifestReader,
  type ManifestRun,
} from '../storage/manifest.js';
import { type CatalogRun, type CatalogStep, commandLinesOf, type RunCatalog } from '../storage/run-catalog.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import { type EventSelection, isRecovery, MAX_RUNS_BEFORE, type RunFacts, type WebhookEvent } from './event.js';
import type { RunDetailsReader, RunNodes } from './run-details.js';
import {
  asksForNodes,
  closesIncident,
  type WebhookFilter,
  type WebhookSubscription,
  type WebhookVerdict,
} from './subscription.js';

/** What a subscription gets of a run: one event for each of these parts, or nothing, and why. */
export type Selected =
  | { readonly kind: 'notified'; readonly selections: readonly EventSelection[] }
  | { readonly kind: 'filtered'; readonly reason: string };

/** An earlier event of a subscription that was delivered, with what it was about. */
export type NotifiedEvent = Pick<WebhookEvent, 'eventType' | 'facts' | 'createdUnixMs'>;

/** What is known of an event before anything is made of it. */
type EventOfRun = Pick<WebhookEvent, 'subscriptionId' | 'facts'>;

/** What a selector works with. */
export interface EventSelectorDeps {
  readonly runDetails: Pick<RunDetailsReader, 'readNodes'>;
  readonly manifests: Pick<ManifestReader, 'read'>;
  /** A subscription's earlier events of the same job, the latest first. */
  readonly notifiedBefore: (event: EventOfRun) => Promise<readonly NotifiedEvent[]>;
  /** A subscription's events of the same failed run. */
  readonly notifiedOfRun: (subscriptionId: string, runId: number) => Promise<readonly NotifiedEvent[]>;
  /** How much of what had failed before a run has recovered with it; `null` where nothing had. @param ofIncident see `RecoveryReader` */
  readonly recoveryOf: (accountId: number, runId: number, ofIncident: boolean) => Promise<Recovery | null>;
}

/** The same failure is reported again after so long, in milliseconds. */
const REPEAT_AFTER_MS = 86_400_000;
/** Nodes that an event is about; more are counted as others'. */
const MAX_NODES = 1_000;

/**
 * Decides what a subscription gets of a run, by what is known of its nodes when the event is first due: its record log
 * has their outcomes and groups, the run's manifest their tags and owners.
 */
export class EventSelector {
  constructor(private readonly deps: EventSelectorDeps) {}

  /** @throws what reading the run or its manifest throws: the attempt has failed then, and is repeated */
  async select(subscription: WebhookSubscription, event: WebhookEvent): Promise<Selected> {
    const { accountId, filter, kind } = subscription;
    const isIncident = closesIncident(kind, event.eventType, event.facts.status);
    if (event.facts.transition !== 'recovery' && !isIncident) return await this.selectOf(subscription, event);
    const recovered = await this.deps.recoveryOf(accountId, event.facts.runId, isIncident);
    const selection = { recovered };
    const judged = { ...event, facts: { ...event.facts, selection } };
    const isPartial = recovered !== null && recovered.count < recovered.ofCount;
    if (isPartial && (isIncident || filter.transitions.length > 0)) {
      return { kind: 'filtered', reason: partialText(recovered) };
    }
    if (isIncident) return notifiedOf([selection]);
    if (recovered === null && filter.transitions.length > 0) {
      return { kind: 'filtered', reason: 'all that had failed had succeeded before' };
    }
    const selected = await this.selectOf(subscription, judged);
    if (selected.kind === 'filtered') return selected;
    return notifiedOf(selected.selections.map((one) => ({ ...one, ...selection })));
  }

  private async selectOf(subscription: WebhookSubscription, event: WebhookEvent): Promise<Selected> {
    const { runDetails } = this.deps;
    const { filter } = subscription;
    const { facts } = event;
    const run = await runDetails.readNodes(subscription.accountId, facts.runId);
    const verdicts = verdictsOf(facts, run);
    if (filter.verdicts.length > 0 && !verdicts.some((one) => filter.verdicts.includes(one))) {
      return { kind: 'filtered', reason: `the run has the verdict ${verdicts.join(' and ')}, which is not asked for` };
    }
    const parts = await this.partsFor(subscription, event, run);
    if (parts.kind === 'filtered' || !subscription.holdsRepeats) return parts;
    return this.withoutRepeats(event, parts.selections);
  }

  /** Selects what has failed of a run that goes on, for each owner; empty where nothing has. @throws as `select` */
  async selectSoFar(subscription: WebhookSubscription, facts: RunFacts): Promise<readonly EventSelection[]> {
    const { failed } = await this.deps.runDetails.readNodes(subscription.accountId, facts.runId);
    if (failed.length === 0) return [];
    const event = { subscriptionId: subscription.id, facts };
    const parts = await this.partsFor(subscription, event, { failed, warned: [], otherErrors: [] });
    return parts.kind === 'filtered' ? [] : parts.selections;
  }

  private async partsFor(subscription: WebhookSubscription, event: EventOfRun, run: RunNodes): Promise<Selected> {
    const { filter, isPerOwner, accountId } = subscription;
    const { facts } = event;
    if (!asksForNodes(filter) && !isPerOwner) return notifiedOf([{ ...keyed(run, run.failed) }]);
    const bad = [...run.failed, ...run.warned];
    if (bad.length === 0) {
      if (facts.status === RUN_STATUS.error) return notifiedOf([{ ...keyed(run, []) }]);
      return this.recovered(event, asksForNodes(filter) ? 'no node of the run failed or warns' : null);
    }
    const { runId, jobId, environmentId } = facts;
    const isManifestNeeded = isPerOwner || filter.tags.length + filter.owners.length + filter.groups.length > 0;
    const isTested = bad.some(({ uniqueId }) => isTestId(uniqueId)) && filter.models.length > 0;
    const manifest =
      isManifestNeeded || isTested ? await this.manifestOf({ accountId, runId, jobId, environmentId }) : undefined;
    const known = bad.map((node) => new KnownNode(node, manifest));
    const matching = known.filter((node) => node.matches(filter));
    // A run whose nodes only warn is not reported as failed.
    const isReported = (nodes: readonly KnownNode[]) =>
      run.failed.length === 0 ? nodes.length > 0 : nodes.some(({ node }) => node.verdict !== 'warned');
    if (!isReported(matching)) {
      const reason = 'none of the nodes that failed or warn match the filters';
      return facts.status === RUN_STATUS.success ? this.recovered(event, reason) : { kind: 'filtered', reason };
    }
    if (!isPerOwner) return notifiedOf([selectionOf(run, matching, bad.length)]);
    const owners = new Map<string | null, KnownNode[]>();
    const isWanted = (owner: string) =>
      filter.owners.length === 0 || filter.owners.some((one) => one.toLowerCase() === owner.toLowerCase());
    for (const node of matching) {
      const wanted = node.owners.filter(isWanted);
      for (const owner of wanted.length === 0 ? [null] : wanted) {
        const nodes = owners.get(owner);
        if (nodes === undefined) owners.set(owner, [node]);
        else nodes.push(node);
      }
    }
    const before = await this.notifiedWhileGoingOn(event);
    const selections = [...owners].flatMap(([owner, nodes]) => {
      const reported = before.get(owner);
      const rest = nodes.filter(({ node }) => reported?.has(node.uniqueId) !== true);
      // Errors that name no node are not looked for while the run goes on.
      const isNews = isReported(rest) || (reported !== undefined && run.otherErrors.length > 0);
      return isNews ? [{ owner, ...selectionOf(run, rest, bad.length) }] : [];
    });
    if (selections.length > 0 || before.size === 0) return notifiedOf(selections);
    return { kind: 'filtered', reason: 'what failed was reported while the run went on' };
  }

  /** Returns the nodes of a failed run that each owner was notified of while it went on. */
  private async notifiedWhileGoingOn({
    subscriptionId,
    facts,
  }: EventOfRun): Promise<ReadonlyMap<string | null, ReadonlySet<string>>> {
    if (facts.isGoingOn || facts.status !== RUN_STATUS.error) return new Map();
    const events = await this.deps.notifiedOfRun(subscriptionId, facts.runId);
    return new Map(
      events.flatMap(({ facts: { isGoingOn, selection } }) =>
        isGoingOn ? [[selection?.owner ?? null, new Set(selection?.nodeIds)] as const] : [],
      ),
    );
  }

  /** A manifest that cannot be read is as if there were none: it holds up no message. */
  private async manifestOf(run: ManifestRun): Promise<Manifest | undefined> {
    try {
      return await this.deps.manifests.read(run);
    } catch {
      return undefined;
    }
  }

  /** Recipients of an event of a failure get one when it is over. @param reason why nobody else is; `null` where all are */
  private async recovered(event: EventOfRun, reason: string | null): Promise<Selected> {
    const { facts } = event;
    if (reason === null) return notifiedOf([{}]);
    if (isRecovery(facts)) {
      const before = (await this.deps.notifiedBefore(event)).filter(isOfScope(facts));
      const [last] = before;
      if (last?.facts.selection?.failureKey !== undefined || last?.facts.status === RUN_STATUS.error)
        return notifiedOf([{}]);
    }
    return { kind: 'filtered', reason };
  }

  private async withoutRepeats(event: WebhookEvent, selections: readonly EventSelection[]): Promise<Selected> {
    const { facts, eventType, createdUnixMs } = event;
    // A failure after a success is reported again.
    if (facts.transition !== undefined || facts.status !== RUN_STATUS.error) return notifiedOf(selections);
    const before = (await this.deps.notifiedBefore(event)).filter(isOfScope(facts));
    const isRepeat = ({ owner, failureKey }: EventSelection) => {
      const last = before.find((one) => one.eventType === eventType && one.facts.selection?.owner === owner);
      if (last === undefined || failureKey === undefined) return false;
      return last.facts.selection?.failureKey === failureKey && createdUnixMs - last.createdUnixMs < REPEAT_AFTER_MS;
    };
    const others = selections.filter((one) => !isRepeat(one));
    if (others.length > 0) return notifiedOf(others);
    return { kind: 'filtered', reason: 'the same failure was reported less than a day ago' };
  }
}

function notifiedOf(selections: readonly EventSelection[]): Selected {
  return { kind: 'notified', selections };
}

/** Returns whether an earlier event of a run's job is of its environment and project. */
function isOfScope({ environmentId, projectId }: RunFacts): (earlier: NotifiedEvent) => boolean {
  return ({ facts }) => facts.environmentId === environmentId && facts.projectId === projectId;
}

function selectionOf(run: RunNodes, matching: readonly KnownNode[], allCount: number): EventSelection {
  const ids = matching.map(({ node }) => node.uniqueId).slice(0, MAX_NODES);
  const failed = matching.map(({ node }) => node).filter(({ verdict }) => verdict !== 'warned');
  const otherCount = allCount - ids.length;
  return { nodeIds: ids, ...(otherCount > 0 && { otherCount }), ...keyed(run, failed) };
}

/** Returns the verdicts of a run, of which filters name one or several. */
export function verdictsOf(facts: RunFacts, { warned }: RunNodes): readonly WebhookVerdict[] {
  const { status } = facts;
  if (status === RUN_STATUS.cancelled) return ['canceled'];
  if (status !== RUN_STATUS.success) return ['failed'];
  return [warned.length > 0 ? 'warned' : 'success', ...(isRecovery(facts) ? (['recovered'] as const) : [])];
}

/** Names a failure by what failed and how, without numbers, which differ from run to run. */
function keyed({ otherErrors }: RunNodes, failed: readonly NodeMeasure[]): Pick<EventSelection, 'failureKey'> {
  if (failed.length === 0 && otherErrors.length === 0) return {};
  const nodes = failed.map(
    ({ uniqueId, verdict, message }) => `${uniqueId} ${verdict} ${withoutNumbers(message ?? '')}`,
  );
  const hash = createHash('sha256');
  for (const text of [...nodes.sort(), ...otherErrors.map(withoutNumbers).sort()]) hash.update(text).update('\0');
  return { failureKey: hash.digest('hex').slice(0, 32) };
}

function withoutNumbers(text: string): string {
  return text.replaceAll(/\d+/g, '#');
}

/** A node with what its manifest says of it, and of the node that it tests. */
class KnownNode {
  private readonly known: ManifestNode | undefined;
  private readonly tested: ManifestNode | undefined;

  constructor(
    readonly node: NodeMeasure,
    manifest: Manifest | undefined,
  ) {
    this.known = manifest?.get(node.uniqueId);
    this.tested = manifest?.get(this.known?.testedId ?? '');
  }

  /** Returns those of the node, else those of the node that it tests. */
  get owners(): readonly string[] {
    const owners = this.known?.owners ?? [];
    return owners.length > 0 ? owners : (this.tested?.owners ?? []);
  }

  /** What is not known of a node does not leave it out: better that a failure is reported too widely than not at all. */
  matches({ tags, owners, groups, models }: WebhookFilter): boolean {
    const isKnown = this.known !== undefined;
    const { uniqueId, name, group } = this.node;
    const allTags = [...(this.known?.tags ?? []), ...(this.tested?.tags ?? [])];
    const allGroups = [group, this.known?.group, this.tested?.group].filter((one) => typeof one === 'string');
    const wantedOwners = owners.map((one) => one.toLowerCase());
    const names = [uniqueId, name, nameOf({ uniqueId, name }), ...namesOfTested(this.known?.testedId ?? null)];
    return (
      (tags.length === 0 || !isKnown || allTags.some((tag) => tags.includes(tag))) &&
      (owners.length === 0 || !isKnown || this.owners.some((one) => wantedOwners.includes(one.toLowerCase()))) &&
      (groups.length === 0 || (!isKnown && allGroups.length === 0) || allGroups.some((one) => groups.includes(one))) &&
      (models.length === 0 ||
        (!isKnown && isTestId(uniqueId)) ||
        models.some((pattern) => names.some((one) => one !== null && isLike(one, pattern))))
    );
  }
}

/** Returns the unique id of the node that a test is of, and its name: with a version where it has one, and without. */
function namesOfTested(testedId: string | null): readonly string[] {
  if (testedId === null) return [];
  const [type, , ...rest] = testedId.split('.');
  const name = rest.join('.');
  // The name of a source has a dot of its own.
  return [testedId, name, ...(type === 'model' ? [name.replace(/\.v.+$/, '')] : [])];
}

/** @param pattern `*` stands for any characters */
function isLike(name: string, pattern: string): boolean {
  const [first = '', ...parts] = pattern.split('*');
  if (!name.startsWith(first)) return false;
  const last = parts.pop();
  if (last === undefined) return name === first;
  let at = first.length;
  for (const part of parts) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - at >= last.length && name.endsWith(last);
}

/** What recoveries are read from. */
export interface RecoveryDeps {
  readonly catalog: Pick<RunCatalog, 'findRun' | 'listRuns' | 'stepsOf'>;
  readonly measures: Pick<RunMeasures, 'ofSteps' | 'digestsOf'>;
}

/** A run, and what it is compared by. */
interface ScopedRun {
  readonly run: CatalogRun;
  readonly judged: JudgedRun;
  readonly scopes: readonly CommandScope[];
  /** Unique ids of the nodes that it worked on. */
  readonly nodes: ReadonlySet<string>;
}

/** Reads how much of what had failed before runs has recovered with them. */
export class RecoveryReader {
  constructor(private readonly deps: RecoveryDeps) {}

  /**
   * Reads how much of what had failed in the runs of the same job and environment before a run, of no job those of the same command and
   * target, has recovered with it; `null` where nothing had failed that had not recovered before.
   * @param ofIncident whether what is still open of other projects, commands and targets counts as well: PagerDuty has one
   * incident of a job and environment
   * @throws StoreError, and errors of the reader if a log cannot be read
   */
  async read(accountId: number, runId: number, ofIncident = false): Promise<Recovery | null> {
    const { catalog, measures } = this.deps;
    const run = await catalog.findRun(accountId, runId);
    if (run === undefined) return null;
    const { items } = await catalog.listRuns(accountId, {
      ...{ jobId: run.job.id, environmentId: run.environment.id, createdRange: [0, run.createdUnixMs] },
      statuses: [RUN_STATUS.success, RUN_STATUS.error],
      ...{ orderBy: 'created', isDescending: true, limit: MAX_RUNS_BEFORE + 1, offset: 0 },
    });
    const earlier = items.filter((one) => one.createdUnixMs < run.createdUnixMs || one.id < runId);
    const ids = [runId, ...earlier.map(({ id }) => id)];
    const steps = groupBy(await catalog.stepsOf(accountId, ids), (step) => step.runId);
    const measured = await measures.ofSteps(steps.get(runId) ?? []);
    const nodes = measured.flatMap(({ command }) => command.nodes.map(({ uniqueId }) => uniqueId));
    const current = await this.scoped(run, steps.get(runId) ?? []);
    const before: JudgedRun[] = [];
    const elsewhere: ScopedRun[] = [];
    for (const one of earlier) {
      const other = await this.scoped(one, steps.get(one.id) ?? []);
      if (belongTogether(current, other)) before.push(other.judged);
      else elsewhere.push(other);
    }
    const recovery = recoveryOf(current.judged, new Set(nodes), before);
    const openCount = ofIncident ? openCountOf(elsewhere) : 0;
    if (openCount === 0) return recovery;
    return { count: recovery?.count ?? 0, ofCount: (recovery?.ofCount ?? 0) + openCount };
  }

  private async scoped(run: CatalogRun, steps: readonly CatalogStep[]): Promise<ScopedRun> {
    const { measures } = this.deps;
    let digests = await measures.digestsOf(steps);
    if (digests === undefined) {
      await measures.ofSteps(steps);
      digests = await measures.digestsOf(steps);
    }
    const judged = {
      isSuccess: run.status === RUN_STATUS.success,
      commandLines: commandLinesOf(steps),
      digests: digests?.length === 0 ? undefined : digests,
    };
    const scopes = digests?.map(({ scope }) => scope) ?? [];
    return { run, judged, scopes, nodes: new Set(digests?.flatMap(({ work }) => work.uniqueIds)) };
  }
}

/** Returns whether one of two runs says something of what failed in the other; of the same project, where not more is known of one. */
function belongTogether(one: ScopedRun, other: ScopedRun): boolean {
  if (one.judged.digests === undefined || other.judged.digests === undefined)
    return one.run.project.id === other.run.project.id;
  return isComparable(one, other);
}

/** Returns how much is still open of what failed in runs of several projects, commands and targets. @param runs the last to start first */
function openCountOf(runs: readonly ScopedRun[]): number {
  const [last, ...others] = runs;
  if (last === undefined) return 0;
  const before = others.filter((one) => belongTogether(last, one)).map(({ judged }) => judged);
  const { isSuccess, digests } = last.judged;
  const recovery = isSuccess ? recoveryOf(last.judged, last.nodes, before) : null;
  const failedCount = isSuccess ? 0 : Math.max(1, digests?.flatMap(({ failed }) => failed).length ?? 0);
  const openCount = recovery === null ? failedCount : recovery.ofCount - recovery.count;
  return openCount + openCountOf(others.filter((one) => !belongTogether(last, one)));
}
