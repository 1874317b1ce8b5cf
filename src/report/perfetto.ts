import { harmlessJson } from '../core/text.js';
import type { NodeMeasure, NodePhase } from '../run/measures/node-measure.js';
import { lanes, later, sooner } from '../run/measures/timeline.js';
import { labelOf } from '../run/measures/troubles.js';
import type { CommandReport } from './content.js';

/** An event of the JSON trace format, as far as it is written here: a slice (`X`), or the name of a process or thread (`M`). */
interface TraceEvent {
  readonly ph: 'X' | 'M';
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly cat?: string;
  /** Microseconds since the trace's first event, and in length. */
  readonly ts?: number;
  readonly dur?: number;
  readonly args: Readonly<Record<string, string | number | boolean | null>>;
}

/** A slice and its track, in nanoseconds since the epoch. */
interface Slice {
  readonly name: string;
  readonly category: string;
  readonly start: bigint;
  readonly end: bigint;
  readonly args: TraceEvent['args'];
  readonly inner: readonly Slice[];
}

/**
 * Reports in Chrome's JSON trace format, which ui.perfetto.dev and speedscope show. A command is a process; its tracks are the command, its phases,
 * its critical path, and lanes of nodes and hooks with their phases inside. Nodes that overlap stand in different lanes: the engine does not tell threads.
 */
export function perfettoReport(reports: readonly CommandReport[]): string {
  const origin = reports.reduce<bigint | null>((first, { command: { invocation } }) => {
    const start = invocation.startTimeUnixNano;
    return first === null || start < first ? start : first;
  }, null);
  const events = reports.flatMap((report, index) => commandEvents(report, index + 1, origin ?? 0n));
  const lines = events.map((event) => harmlessJson(JSON.stringify(event))).join(',\n');
  const otherData = JSON.stringify({ start_time_unix_nano: String(origin ?? 0n), made_by: 'run-bridge' });
  return `{"displayTimeUnit":"ms","otherData":${otherData},"traceEvents":[\n${lines}\n]}\n`;
}

function commandEvents({ command, traceId }: CommandReport, pid: number, origin: bigint): readonly TraceEvent[] {
  const { invocation, phases, nodes, unselectedNodes, hooks, criticalPath } = command;
  const end = invocation.endTimeUnixNano;
  const tracks: { readonly name: string; readonly slices: readonly Slice[] }[] = [];
  const words = invocation.rawCommand ?? invocation.command ?? 'command';
  const args = { verdict: invocation.verdict, trace_id: traceId, status_message: invocation.statusMessage };
  tracks.push({
    name: 'command',
    slices: [slice(words, 'command', invocation.startTimeUnixNano, end, args)],
  });
  const phaseSlices = phases.map((phase) =>
    slice(phase.phase, 'phase', phase.startTimeUnixNano, phase.endTimeUnixNano ?? end, {
      has_end: phase.endTimeUnixNano !== null,
    }),
  );
  tracks.push(...lanes(phaseSlices).map((slices, lane) => ({ name: `phases ${lane + 1}`, slices })));
  let at = invocation.startTimeUnixNano;
  const links = criticalPath.links.map(({ step, waitNano, timeNano }) => {
    const start = at + waitNano;
    at = start + timeNano;
    return slice(`${step.phase} ${step.uniqueId ?? ''}`.trim(), 'critical path', start, at, {
      wait_ms: Number(waitNano) / 1e6,
    });
  });
  tracks.push({ name: 'critical path', slices: links });
  const worked = [
    ...[...nodes, ...unselectedNodes].flatMap((node) => nodeSlice(node, end)),
    ...hooks.map(({ uniqueId, verdict, startTimeUnixNano, endTimeUnixNano }) =>
      slice(uniqueId, 'hook', startTimeUnixNano, endTimeUnixNano ?? end, { verdict }),
    ),
  ];
  tracks.push(...lanes(worked).map((slices, lane) => ({ name: `nodes ${lane + 1}`, slices })));
  return [
    { ph: 'M', name: 'process_name', pid, tid: 0, args: { name: words } },
    ...tracks.flatMap(({ name, slices }, index): readonly TraceEvent[] => {
      const tid = index + 1;
      return [
        { ph: 'M', name: 'thread_name', pid, tid, args: { name } },
        { ph: 'M', name: 'thread_sort_index', pid, tid, args: { sort_index: index } },
        ...slices.flatMap((one) => sliceEvents(one, { pid, tid }, origin)),
      ];
    }),
  ];
}

function slice(name: string, category: string, start: bigint, end: bigint, args: TraceEvent['args']): Slice {
  return { name, category, start, end: end < start ? start : end, args, inner: [] };
}

/** A node and its phases; nothing of one that has no start. */
function nodeSlice(node: NodeMeasure, commandEnd: bigint): readonly Slice[] {
  const { uniqueId, startTimeUnixNano: start, endTimeUnixNano, verdict, phases, rows, message } = node;
  if (start === null) return [];
  const end =
    endTimeUnixNano ?? phases.reduce((last, { endTimeUnixNano: of }) => (of !== null && of > last ? of : last), start);
  const until = endTimeUnixNano === null && phases.some((phase) => phase.endTimeUnixNano === null) ? commandEnd : end;
  const args = {
    unique_id: uniqueId,
    verdict,
    rows,
    message,
    warehouse_ms: Number(node.warehouseTimeNano) / 1e6,
    query_count: node.queryCount,
  };
  const whole = slice(labelOf(node), 'node', start, until, args);
  return [{ ...whole, inner: innerSlices(phases, whole) }];
}

/** Phases of a node, cut where they would not nest. */
function innerSlices(phases: readonly NodePhase[], { start, end }: Slice): readonly Slice[] {
  let free = start;
  return phases.flatMap((phase) => {
    const from = later(phase.startTimeUnixNano, free);
    const to = phase.endTimeUnixNano === null || phase.endTimeUnixNano > end ? end : phase.endTimeUnixNano;
    if (to < from) return [];
    free = to;
    const args = { outcome: phase.outcome, has_end: phase.endTimeUnixNano !== null };
    const waits = phase.waits.flatMap((wait) => {
      const start = later(wait.startTimeUnixNano, from);
      return start < to ? [slice('waiting', 'wait', start, sooner(wait.endTimeUnixNano, to), {})] : [];
    });
    return [{ ...slice(phase.phase, 'node phase', from, to, args), inner: waits }];
  });
}

function sliceEvents(one: Slice, track: Pick<TraceEvent, 'pid' | 'tid'>, origin: bigint): readonly TraceEvent[] {
  const { name, category, start, end, args, inner } = one;
  const event = {
    ph: 'X',
    name,
    cat: category,
    ts: micros(start - origin),
    dur: micros(end - start),
    ...track,
    args,
  } as const;
  return [event, ...inner.flatMap((part) => sliceEvents(part, track, origin))];
}

function micros(nano: bigint): number {
  return Number(nano) / 1_000;
}
