import { counted } from '../core/text.js';
import type { Resource } from '../record/attributes.js';
import { type SpanId, type SpanStatus, type TraceId, toUnixMs, type UnixNano } from '../record/telemetry-record.js';
import type { CommandEnding } from '../storage/steps.js';

/** How an invocation ended; `lost` means that no end was seen. */
export type Verdict = 'success' | 'error' | 'canceled' | 'lost';

/** One engine command: a step of its trace's run. */
export interface InvocationSummary {
  /** Position in the trace, from 1, in the order in which the invocations were first seen. */
  readonly index: number;
  /** Id of the invocation span; known from its children if the span itself is missing. `null` if unknown. */
  readonly spanId: SpanId | null;
  /** Id of the process span that goes with it, when it was seen. */
  readonly processSpanId: SpanId | null;
  /** The outer span that both root spans name as parent, when the command joined an orchestrator's trace. */
  readonly outerParentSpanId: SpanId | null;
  /** Whether the invocation span's end was seen. */
  readonly hasInvocationEnd: boolean;
  /** Whether the process span's end was seen. */
  readonly hasProcessEnd: boolean;
  /** Whether some record could belong to another invocation of the trace just as well. */
  readonly isAmbiguous: boolean;
  /** First word of the command line, for example `build`; `null` until known. */
  readonly command: string | null;
  /** The command line; `null` until known. */
  readonly rawCommand: string | null;
  readonly resource: Resource;
  /** Earliest start and latest end or time among its records. */
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
  /** `null` while it is running. */
  readonly verdict: Verdict | null;
  /** Why, in words: the span's status message, or what was missing. */
  readonly statusMessage: string | null;
  readonly totalErrors: number | null;
  readonly totalWarnings: number | null;
  /** Selected nodes by outcome, after the truth about interrupted nodes. */
  readonly nodeCounts: NodeCounts;
  readonly recordCount: number;
  /** File name in the run's folder: `telemetry.parquet`, or `telemetry-2.parquet` … for the further ones. */
  readonly parquetFile: string;
  /** The step that ran it; `null` if unknown. */
  readonly step: InvocationStep | null;
}

/** How long an engine command took, in milliseconds: the one duration that is shown, as the state counts that of its run. */
export function commandLengthMs({
  startTimeUnixNano,
  endTimeUnixNano,
}: Pick<InvocationSummary, 'startTimeUnixNano' | 'endTimeUnixNano'>): number {
  return toUnixMs(endTimeUnixNano) - toUnixMs(startTimeUnixNano);
}

/** The step of a run that an invocation belongs to. */
export interface InvocationStep {
  readonly stepId: string;
  /** Position in its run, from 1. */
  readonly stepIndex: number;
  readonly runId: number;
  /** The user's name for the run (`--run-id`). */
  readonly runKey: string | null;
  readonly job: string;
  readonly environment: string | null;
  readonly project: string | null;
  readonly reason: string | null;
  /** The outcome of its command; `null` while it is running. */
  readonly ending: CommandEnding | null;
}

/** The verdicts of nodes that this version knows, in display order. */
export const NODE_VERDICTS = ['success', 'warned', 'failed', 'error', 'canceled', 'skipped', 'unfinished'] as const;

export type KnownVerdict = (typeof NODE_VERDICTS)[number];

/**
 * The engine's word for an outcome that this version does not know, in lower case: `deferred` for
 * `NODE_OUTCOME_DEFERRED`. At most 40 characters, of `a` to `z`, digits and `_`.
 */
export type EngineWord = string & { readonly __brand: 'EngineWord' };

/** The verdict of a node, derived from outcome, test outcome, freshness and interruptions. */
export type NodeVerdict = KnownVerdict | EngineWord;

/** Returns whether a node has an outcome that this version does not know. */
export function hasOwnWord({ verdict }: { readonly verdict: NodeVerdict }): boolean {
  return !NODE_VERDICTS.some((known) => known === verdict);
}

/** Number of nodes by verdict, with the engine's words for unknown ones. */
export type NodeCounts = Readonly<Record<KnownVerdict, number>> & Readonly<Record<string, number>>;

/** A trace's run: its record log and the invocations in it. */
export interface RunSummary {
  readonly traceId: TraceId;
  readonly firstSeenUnixMs: number;
  readonly lastSeenUnixMs: number;
  /** `finished` once every invocation in it has a verdict. */
  readonly state: 'open' | 'finished';
  readonly logBytes: number;
  readonly invocations: readonly InvocationSummary[];
}

const SPAN_STATUS_ERROR = 2;
/**
 * `--fail-fast` interrupts running nodes as soon as the first one fails: 1 to 35 ms later in the engine's runs. A signal from
 * the user comes at any time.
 */
const FAIL_FAST_WINDOW_NANO = 1_000_000_000n;

/** A command line that asks to be stopped by the first failure. */
export const FAIL_FAST = /\s(--fail-fast|-x)(\s|$)/;

/** The state of an invocation that has ended or is silent permanently. */
export interface VerdictEvidence {
  readonly hasInvocationEnd: boolean;
  readonly hasProcessEnd: boolean;
  /** Status of the invocation span, when it ended. */
  readonly status: SpanStatus | null;
  readonly totalErrors: number | null;
  readonly rawCommand: string | null;
  readonly nodeCounts: NodeCounts;
  /** When the first node was found to have failed, and which. */
  readonly firstFailure: { readonly uniqueId: string; readonly timeUnixNano: UnixNano } | null;
  /** Time of the first sign that work was cut short. */
  readonly interruptedAtUnixNano: UnixNano | null;
  /** Whether a log message reported it (1404, 8995), and not only a cancelled query. */
  readonly hasCancelMessage: boolean;
  readonly errorLogCount: number;
  /** Whether nothing but the process span arrived. */
  readonly isBareProcess: boolean;
  /** Whether a signal is known to have asked the command to stop. */
  readonly isStopped: boolean;
}

/** A verdict and the reason for it in words. */
export interface VerdictWithReason {
  readonly verdict: Verdict;
  /** `null` if there is no message. */
  readonly statusMessage: string | null;
}

/**
 * Returns the verdict of an invocation:
 * - `lost`: neither the invocation span nor the process span ended.
 * - `canceled`: it was interrupted, but not by `--fail-fast`, which is an error.
 * - `error`: its span or its metrics report it, or nodes failed.
 * - `success`: none of these.
 */
export function verdictOf(evidence: VerdictEvidence): VerdictWithReason {
  if (!evidence.hasInvocationEnd && !evidence.hasProcessEnd) {
    return { verdict: 'lost', statusMessage: 'No end was seen: the engine was killed, or its last telemetry was lost' };
  }
  const failedCount = evidence.nodeCounts.failed + evidence.nodeCounts.error;
  if (wasInterrupted(evidence)) {
    const cut = cutShort(evidence.nodeCounts);
    const { firstFailure } = evidence;
    const failFast = firstFailure === null ? 'no' : wasFailFast(evidence, firstFailure.timeUnixNano);
    if (firstFailure !== null && failFast !== 'no') {
      const by = failFast === 'yes' ? 'Stopped by fail-fast' : 'Stopped by fail-fast or by somebody';
      return { verdict: 'error', statusMessage: `${by} after ${firstFailure.uniqueId} failed: ${cut}` };
    }
    return { verdict: 'canceled', statusMessage: `Interrupted: ${cut}` };
  }
  const { status, totalErrors } = evidence;
  if (status?.code === SPAN_STATUS_ERROR) {
    return { verdict: 'error', statusMessage: status.message ?? `${counted(failedCount, 'node')} failed` };
  }
  if (failedCount > 0) return { verdict: 'error', statusMessage: `${counted(failedCount, 'node')} failed` };
  if (totalErrors !== null && totalErrors > 0) {
    return { verdict: 'error', statusMessage: counted(totalErrors, 'error') };
  }
  if (evidence.hasInvocationEnd) return { verdict: 'success', statusMessage: status?.message ?? null };
  return withoutInvocationEnd(evidence);
}

/** Judges by the nodes and the log, where the process ended and the invocation span did not, or was lost. */
function withoutInvocationEnd({ nodeCounts, errorLogCount, isBareProcess }: VerdictEvidence): VerdictWithReason {
  // So ends the engine outside a project, with exit code 1.
  if (isBareProcess) return { verdict: 'error', statusMessage: 'The process ended before any command began' };
  const reason = 'The process ended without the end of its invocation span';
  if (nodeCounts.unfinished > 0) {
    return { verdict: 'error', statusMessage: `${reason}: ${counted(nodeCounts.unfinished, 'node')} not finished` };
  }
  if (errorLogCount > 0) {
    return { verdict: 'error', statusMessage: `${reason}: ${counted(errorLogCount, 'error message')}` };
  }
  return { verdict: 'success', statusMessage: `${reason}; no node failed` };
}

function wasInterrupted(evidence: VerdictEvidence): boolean {
  if (evidence.hasCancelMessage || evidence.nodeCounts.canceled > 0) return true;
  return evidence.interruptedAtUnixNano !== null && !evidence.hasInvocationEnd;
}

/** Returns whether the failure of a node, and not the user, cut the work short. */
function wasFailFast(
  { interruptedAtUnixNano, rawCommand, isStopped }: VerdictEvidence,
  failedAtUnixNano: UnixNano,
): 'yes' | 'maybe' | 'no' {
  if (rawCommand !== null && FAIL_FAST.test(rawCommand)) return 'yes';
  if (interruptedAtUnixNano === null || isStopped) return 'no';
  const gap = interruptedAtUnixNano - failedAtUnixNano;
  // A variable (DBT_FAIL_FAST) may ask for it as well, and somebody may have stopped it just then.
  return gap <= FAIL_FAST_WINDOW_NANO && gap >= -FAIL_FAST_WINDOW_NANO ? 'maybe' : 'no';
}

/** Returns whether a command that ended in a way was asked to stop by a signal. */
export function wasStopped(ending: CommandEnding): boolean {
  if (ending.kind === 'exited' && ending.stoppedBy !== undefined) return true;
  const signal = killingSignal(ending);
  return signal !== null && STOP_SIGNALS.has(signal);
}

/** Nodes in progress when the command was stopped; the engine reports some of them as cancelled and others not at all. */
function cutShort({ canceled, unfinished }: VerdictEvidence['nodeCounts']): string {
  if (unfinished === 0) return canceled === 0 ? 'no node was running' : `${counted(canceled, 'node')} canceled`;
  if (canceled === 0) return `${counted(unfinished, 'node')} not finished`;
  return `${counted(canceled, 'node')} canceled, ${unfinished} not finished`;
}

/** The command of an invocation. */
export interface EndedCommand {
  readonly ending: CommandEnding;
  /** Whether the command consisted of this invocation only, as far as telemetry shows: then its exit code applies to it. */
  readonly isSole: boolean;
}

const REPORTER_GONE = 'No end was seen: the program that ran the command has gone without reporting how it ended';
/** Signals by which people and systems stop a command; any other is a fault. */
export const STOP_SIGNALS: ReadonlySet<string> = new Set(['SIGINT', 'SIGTERM', 'SIGHUP']);

/**
 * Returns a verdict by the telemetry alone, revised by the outcome of the command. Certain facts stay: a failed
 * node is an error whatever the exit code, an interrupted command is canceled. If the end is missing, the command decides.
 */
export function withEnding(
  reported: VerdictWithReason,
  evidence: Pick<VerdictEvidence, 'hasInvocationEnd' | 'hasProcessEnd' | 'nodeCounts'>,
  { ending, isSole }: EndedCommand,
): VerdictWithReason {
  const command = `The command ${endingWords(ending)}`;
  if (ending.kind === 'unknown') {
    return reported.verdict === 'lost' ? { ...reported, statusMessage: REPORTER_GONE } : reported;
  }
  if (ending.kind === 'within' || (ending.kind === 'exited' && ending.exitCode === 0)) {
    return reported.verdict === 'lost' ? endedWithoutProof(reported, evidence, command) : reported;
  }
  const signal = killingSignal(ending);
  const verdict = signal !== null && STOP_SIGNALS.has(signal) ? 'canceled' : 'error';
  if (reported.verdict === 'lost') return { verdict, statusMessage: `${command}; ${atWork(evidence)}` };
  if (reported.verdict === 'success' && isSole) {
    const reason = evidence.hasInvocationEnd
      ? 'its telemetry tells of no failure'
      : lowerFirst(reported.statusMessage ?? '');
    return { verdict, statusMessage: `${command}, though ${reason}` };
  }
  if (signal === null || evidence.hasInvocationEnd) return reported;
  return { ...reported, statusMessage: `${reported.statusMessage ?? ''}; the command ${endingWords(ending)}` };
}

/**
 * Returns the verdict of an invocation whose telemetry has no end although the command succeeded. That is no proof: the exit code may be that of a shell, which
 * is unrelated to a killed engine (`dbt build | tee log`, `dbt build || true`).
 */
function endedWithoutProof(
  { statusMessage }: VerdictWithReason,
  { nodeCounts }: Pick<VerdictEvidence, 'nodeCounts'>,
  command: string,
): VerdictWithReason {
  const failedCount = nodeCounts.failed + nodeCounts.error;
  if (failedCount === 0) {
    const unfinished = atWork({ nodeCounts });
    return { verdict: 'lost', statusMessage: `${statusMessage ?? ''}; ${unfinished}; ${lowerFirst(command)}` };
  }
  const nodes = counted(failedCount, 'node');
  const rest = 'the end of its telemetry was not seen';
  return { verdict: 'error', statusMessage: `${nodes} failed; ${lowerFirst(command)}, ${rest}` };
}

function atWork({ nodeCounts: { unfinished } }: Pick<VerdictEvidence, 'nodeCounts'>): string {
  if (unfinished === 0) return 'no node was running';
  return `${counted(unfinished, 'node')} had not ended`;
}

function lowerFirst(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}

/** Returns the outcome of a command as text after its name: `ended with exit code 1`. */
export function endingWords(ending: CommandEnding): string {
  switch (ending.kind) {
    case 'exited': {
      const signal = shellSignal(ending.exitCode);
      const hint = signal === null ? '' : ` (as a shell says of a command killed by ${signal})`;
      return `ended with exit code ${ending.exitCode}${hint}`;
    }
    case 'killed':
      return `was killed by ${ending.signal}`;
    case 'notStarted':
      return `could not be started${ending.reason === '' ? '' : ` (${ending.reason})`}`;
    case 'within':
      return 'ended inside a command that went on';
    case 'unknown':
      return 'ended in an unknown way';
  }
}

/** Returns the signal that killed a command, directly or below a shell; `null` where none did. */
export function killingSignal(ending: CommandEnding): string | null {
  if (ending.kind === 'killed') return ending.signal;
  return ending.kind === 'exited' ? shellSignal(ending.exitCode) : null;
}

/** Linux's numbers of the signals that end programs; a shell's exit code is 128 more. */
const SIGNALS: ReadonlyMap<number, string> = new Map([
  [1, 'SIGHUP'],
  [2, 'SIGINT'],
  [3, 'SIGQUIT'],
  [4, 'SIGILL'],
  [6, 'SIGABRT'],
  [7, 'SIGBUS'],
  [8, 'SIGFPE'],
  [9, 'SIGKILL'],
  [11, 'SIGSEGV'],
  [13, 'SIGPIPE'],
  [15, 'SIGTERM'],
]);

function shellSignal(exitCode: number): string | null {
  return SIGNALS.get(exitCode - 128) ?? null;
}

/** Words of the engine that are counted apart; the nodes of any others count as `other`. */
const MAX_OWN_WORDS = 16;

/** Number of nodes by verdict. */
export function countVerdicts(nodes: Iterable<{ readonly verdict: NodeVerdict }>): NodeCounts {
  const counts = new Map<string, number>(NODE_VERDICTS.map((verdict) => [verdict, 0]));
  const maxWords = counts.size + MAX_OWN_WORDS;
  for (const { verdict } of nodes) {
    const word = counts.has(verdict) || counts.size < maxWords ? verdict : 'other';
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const known = { success: 0, warned: 0, failed: 0, error: 0, canceled: 0, skipped: 0, unfinished: 0 };
  return { ...known, ...Object.fromEntries(counts) };
}

/**
 * Returns the nodes that a command selected. The engine also works on others, for example a model that a unit test needs rendered,
 * and leaves them out of its summary and `run_results.json`; here they count if they failed. Older engines do not mark selected
 * nodes: there all of them count.
 */
export function selectedNodes<Node extends Selectable>(nodes: Iterable<Node>): readonly Node[] {
  const all = [...nodes];
  if (!all.some(({ isSelected }) => isSelected === true)) return all;
  return all.filter(({ isSelected, verdict }) => isSelected !== false || verdict === 'error');
}

/** The part of a node that shows whether it was selected. */
export interface Selectable {
  readonly verdict: NodeVerdict;
  /** NodeProcessed `in_selection`, which is left out where it is false; `null` where no NodeProcessed span was seen. */
  readonly isSelected: boolean | null;
}

/** Verdicts, the worst first; an outcome that only the engine knows comes before them. */
const WORST_FIRST: readonly string[] = ['error', 'failed', 'canceled', 'unfinished', 'warned', 'skipped', 'success'];

/** Orders nodes by how they ended, the worst first. */
export function byVerdict(a: { readonly verdict: NodeVerdict }, b: { readonly verdict: NodeVerdict }): number {
  return WORST_FIRST.indexOf(a.verdict) - WORST_FIRST.indexOf(b.verdict);
}
