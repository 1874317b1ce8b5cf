import { harmlessJson } from '../core/text.js';
import type { NodeMeasure, NodePhase } from '../run/measures/node-measure.js';
import {
  type LimitedLanes,
  lanes,
  limitedLanes,
  MAX_LANES,
  piecesOf,
  type TimelinePiece,
} from '../run/measures/timeline.js';
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

/** A line of slices that follow one another. */
interface Track {
  readonly name: string;
  readonly slices: readonly Slice[];
}

/** A slice of a track, in nanoseconds since the epoch. */
interface Slice {
  readonly name: string;
  readonly category: string;
  readonly start: bigint;
  readonly end: bigint;
  readonly args: TraceEvent['args'];
}

/**
 * Reports in Chrome's JSON trace format, which ui.perfetto.dev and speedscope show. A command is a process; its tracks are the command, its phases,
 * its critical path, lanes of what was worked on (parts of nodes' phases in which they did not wait, and hooks) and of waits. What overlaps stands in different lanes: the engine does not tell threads.
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
  const tracks: Track[] = [];
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
    ...[...nodes, ...unselectedNodes].flatMap((node) => piecesOf(node, end).map(pieceSlice)),
    ...hooks.map(({ uniqueId, verdict, startTimeUnixNano, endTimeUnixNano }) =>
      slice(uniqueId, 'hook', startTimeUnixNano, endTimeUnixNano ?? end, { verdict }),
    ),
  ];
  tracks.push(...laneTracks('nodes', worked, MAX_LANES));
  const waits = [...nodes, ...unselectedNodes].flatMap((node) =>
    node.phases.flatMap((phase) => waitSlices(node, phase)),
  );
  tracks.push(...laneTracks('waiting', waits, MAX_WAIT_LANES));
  return [
    { ph: 'M', name: 'process_name', pid, tid: 0, args: { name: words } },
    ...tracks.flatMap(({ name, slices }, index): readonly TraceEvent[] => {
      const tid = index + 1;
      return [
        { ph: 'M', name: 'thread_name', pid, tid, args: { name } },
        { ph: 'M', name: 'thread_sort_index', pid, tid, args: { sort_index: index } },
        ...slices.map((one) => sliceEvent(one, { pid, tid }, origin)),
      ];
    }),
  ];
}

function slice(name: string, category: string, start: bigint, end: bigint, args: TraceEvent['args']): Slice {
  return { name, category, start, end: end < start ? start : end, args };
}

/** A piece of a node's work. */
function pieceSlice({ node, phase, start, end }: TimelinePiece): Slice {
  const { uniqueId, verdict, rows, message, warehouseTimeNano, queryCount, idleTimeMs } = node;
  const of = { unique_id: uniqueId, phase, verdict, rows, message };
  const times = { warehouse_ms: Number(warehouseTimeNano) / 1e6, query_count: queryCount, wait_ms: idleTimeMs };
  return slice(labelOf(node), 'node', start, end, { ...of, ...times });
}

/** Waits of nodes, which say less than work, have fewer lanes. */
const MAX_WAIT_LANES = 8;

function waitSlices({ uniqueId }: NodeMeasure, { phase, waits }: NodePhase): readonly Slice[] {
  return waits.map((wait) =>
    slice('waiting', 'wait', wait.startTimeUnixNano, wait.endTimeUnixNano, { unique_id: uniqueId, phase }),
  );
}

/** Slices in lanes, each a track, and what finds none in one more. */
function laneTracks(name: string, slices: readonly Slice[], maxLanes: number): readonly Track[] {
  const { lanes: found, crowds } = limitedLanes(slices, maxLanes);
  const tracks = found.map((lane, at) => ({ name: `${name} ${at + 1}`, slices: lane }));
  return crowds.length === 0 ? tracks : [...tracks, { name: `more ${name} at once`, slices: crowds.map(crowdSlice) }];
}

/** The most nodes of a crowd that are named. */
const MAX_NAMED = 50;

/** Work that found no lane, together. */
function crowdSlice({ start, end, slices }: LimitedLanes<Slice>['crowds'][number]): Slice {
  const names = slices.slice(0, MAX_NAMED).map(({ name, args }) => String(args.unique_id ?? name));
  return slice(`${slices.length} more`, slices[0]?.category ?? '', start, end, {
    count: slices.length,
    first: names.join(', '),
  });
}

function sliceEvent(one: Slice, track: Pick<TraceEvent, 'pid' | 'tid'>, origin: bigint): TraceEvent {
  const { name, category, start, end, args } = one;
  return { ph: 'X', name, cat: category, ts: micros(start - origin), dur: micros(end - start), ...track, args };
}

function micros(nano: bigint): number {
  return Number(nano) / 1_000;
}
