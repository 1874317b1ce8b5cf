import type { TraceId } from '../../record/ids.js';
import type { InvocationSummary } from '../../run/run-summary.js';
import type { UnnamedRun } from '../../store/trace-catalog.js';
import type { RunFiles } from './run-files.js';

/** Earlier commands that one is compared with. */
const MAX_EARLIER = 50;

/** A command, and where its run belongs. */
interface PlacedCommand {
  readonly invocation: InvocationSummary;
  readonly job: string | null;
  readonly project: string | null;
}

/** Finds where the runs of commands belong: their steps say it, and of those that nobody named the state. */
export class CommandPlaces {
  private readonly unnamed: ReadonlyMap<string, UnnamedRun>;

  constructor(unnamed: readonly UnnamedRun[]) {
    this.unnamed = new Map(unnamed.map((run) => [`${run.traceId} ${run.commandIndex}`, run]));
  }

  /** The number of the command's run; `null` where it is not known. */
  runIdOf(traceId: TraceId, { step, index }: InvocationSummary): number | null {
    return step?.runId ?? this.unnamed.get(`${traceId} ${index}`)?.runId ?? null;
  }

  placed(traceId: TraceId, invocation: InvocationSummary): PlacedCommand {
    const place = invocation.step ?? this.unnamed.get(`${traceId} ${invocation.index}`);
    return { invocation, job: place?.job ?? null, project: place?.project ?? null };
  }
}

/**
 * How long the 50 latest earlier commands took that are of the same project and job and began with the same word, and
 * succeeded; in milliseconds, the last to start first. Commands that nobody gave a job are of one job together.
 * @param recent runs among which they are looked for
 */
export async function earlierLengthsMs(
  invocation: InvocationSummary,
  ownTraceId: TraceId,
  files: RunFiles,
  { recent, places }: { readonly recent: readonly TraceId[]; readonly places: CommandPlaces },
): Promise<readonly number[]> {
  const command = places.placed(ownTraceId, invocation);
  const earlier: InvocationSummary[] = [];
  for (const traceId of recent) {
    if (traceId === ownTraceId) continue;
    for (const other of (await files.summary(traceId))?.invocations ?? []) {
      if (isComparable(places.placed(traceId, other), command)) earlier.push(other);
    }
  }
  return earlier
    .sort((a, b) => (a.startTimeUnixNano > b.startTimeUnixNano ? -1 : 1))
    .slice(0, MAX_EARLIER)
    .map(({ startTimeUnixNano, endTimeUnixNano }) => Number(endTimeUnixNano - startTimeUnixNano) / 1e6);
}

function isComparable(other: PlacedCommand, command: PlacedCommand): boolean {
  return (
    other.invocation.verdict === 'success' &&
    other.invocation.command === command.invocation.command &&
    other.invocation.startTimeUnixNano < command.invocation.startTimeUnixNano &&
    other.job === command.job &&
    other.project === command.project
  );
}
