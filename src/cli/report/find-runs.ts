import type { TraceId } from '../../record/ids.js';
import { parseRunNumber } from '../../store/run-number.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-code.js';
import type { RunFiles } from './run-files.js';

const MIN_PREFIX = 4;
const MAX_NAMED = 5;

/**
 * The traces of the run that is meant, in the order in which they began.
 * @param named the number of a run, a trace or invocation id, its first characters (four at least), or the `--run-id` of a run
 *   of several commands; the run of which records came last when left out
 * @param recent the runs among which names are looked for, newest first
 * @param tracesOf asks the state for the traces of a run by its number
 * @throws CliError when there is none, or more than one that begins so.
 */
export async function findRuns(
  named: string | undefined,
  files: RunFiles,
  recent: readonly TraceId[],
  tracesOf: (runId: number) => Promise<readonly TraceId[]>,
): Promise<readonly TraceId[]> {
  const [latest] = recent;
  if (latest === undefined) {
    throw new CliError(EXIT.failed, `no run is in ${files.dataFolder}; --data-dir says where runs are`);
  }
  if (named === undefined) return [latest];
  const numbered = await keptTracesOf(named, files, tracesOf);
  if (numbered.length > 0) return await inOrder(numbered, files);
  const hex = named.replaceAll('-', '').toLowerCase();
  const isPrefix = /^[0-9a-f]+$/.test(hex) && hex.length >= MIN_PREFIX;
  const matches = isPrefix ? (await files.traces()).filter((traceId) => traceId.startsWith(hex)) : [];
  if (matches.length > 1) {
    const some = [...matches].sort().slice(0, MAX_NAMED).join(', ');
    const more = matches.length > MAX_NAMED ? ` and ${matches.length - MAX_NAMED} more` : '';
    throw new CliError(
      EXIT.failed,
      `${named} may be any of ${matches.length} runs; give more of its id: ${some}${more}`,
    );
  }
  if (matches.length === 1) return matches;
  const traces = await tracesOfRun(named, files, recent);
  if (traces.length > 0) return await inOrder(traces, files);
  const hint = 'check the spelling; without a run, the latest is reported, and --data-dir says where runs are';
  throw new CliError(EXIT.failed, `no run ${JSON.stringify(named)} is in ${files.dataFolder}; ${hint}`);
}

async function tracesOfRun(named: string, files: RunFiles, recent: readonly TraceId[]): Promise<readonly TraceId[]> {
  const found: TraceId[] = [];
  for (const traceId of recent) {
    const steps = (await files.summary(traceId))?.invocations.map(({ step }) => step) ?? [];
    if (steps.some((step) => step !== null && (step.runKey === named || String(step.runId) === named)))
      found.push(traceId);
  }
  return found;
}

/** The traces of the run with that number of which something is kept. */
async function keptTracesOf(
  named: string,
  files: RunFiles,
  tracesOf: (runId: number) => Promise<readonly TraceId[]>,
): Promise<readonly TraceId[]> {
  const runId = parseRunNumber(named);
  if (runId === undefined) return [];
  const traces = await tracesOf(runId);
  if (traces.length === 0) return [];
  const kept = new Set(await files.traces());
  return traces.filter((traceId) => kept.has(traceId));
}

/** Traces by the start of their first command; those without a summary last. */
async function inOrder(traces: readonly TraceId[], files: RunFiles): Promise<readonly TraceId[]> {
  const timed: { readonly traceId: TraceId; readonly start: bigint | null }[] = [];
  for (const traceId of traces) {
    const starts = (await files.summary(traceId))?.invocations.map(({ startTimeUnixNano }) => startTimeUnixNano) ?? [];
    timed.push({ traceId, start: starts.reduce<bigint | null>((a, b) => (a === null || b < a ? b : a), null) });
  }
  return timed
    .sort((a, b) => (a.start === null ? 1 : b.start === null || a.start < b.start ? -1 : 1))
    .map(({ traceId }) => traceId);
}
