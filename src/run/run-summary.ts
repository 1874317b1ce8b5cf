import type { Resource } from '../record/attributes.js';
import type { SpanId, TraceId } from '../record/ids.js';
import type { UnixNano } from '../record/unix-nano.js';
import type { CommandEnding } from '../storage/command-ending.js';

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
 * The engine's own word for an outcome that this version does not know, in lower case: `deferred` for
 * `NODE_OUTCOME_DEFERRED`. At most 40 characters, of `a` to `z`, digits and `_`.
 */
export type EngineWord = string & { readonly __brand: 'EngineWord' };

/** The verdict of a node, derived from outcome, test outcome, freshness and interruptions. */
export type NodeVerdict = KnownVerdict | EngineWord;

/** Whether a node has an outcome that this version does not know. */
export function hasOwnWord({ verdict }: { readonly verdict: NodeVerdict }): boolean {
  return !NODE_VERDICTS.some((known) => known === verdict);
}

/** Number of nodes by verdict, with the engine's own words for unknown ones. */
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
