import { EVENTS } from '../../record/event-table.js';

/** Full names of the messages that the mapping treats in a way of their own. */
export const EVENT_TYPE = {
  invocation: 'v1.public.events.fusion.invocation.Invocation',
  process: 'v1.public.events.fusion.process.Process',
  nodeProcessed: 'v1.public.events.fusion.node.NodeProcessed',
  nodeEvaluated: 'v1.public.events.fusion.node.NodeEvaluated',
  microbatchEvaluated: 'v1.public.events.fusion.node.MicrobatchEvaluated',
  hookProcessed: 'v1.public.events.fusion.hook.HookProcessed',
  queryExecuted: 'v1.public.events.fusion.query.QueryExecuted',
} as const;

/** The last part of a message's full name, for example `LogMessage`; `log` for none. */
export function shortEventType(eventType: string): string {
  const short = eventType.slice(eventType.lastIndexOf('.') + 1);
  return short === '' ? 'log' : short;
}

/**
 * A span's name without what changes from run to run: ids, counts, versions, places in the engine's source. One series
 * in span metrics is then one thing, whatever run it comes from.
 * @param command the invocation's command, for example `build`, where it is known.
 */
export function stableSpanName(name: string, eventType: string, command: string | undefined): string {
  if (eventType === EVENT_TYPE.invocation) {
    const stable = name.replace(/ \([^)]*\)$/, '');
    return command === undefined ? stable : `${stable} (${command})`;
  }
  const stable = stableNameOf(eventType);
  if (stable === true) return name;
  return stable === undefined ? name.replace(UUID, '*').replace(COUNTS, '') : name.replace(...stable);
}

function stableNameOf(eventType: string) {
  return EVENTS.get(eventType)?.span?.stableName;
}

/** Whether the names of such spans contain nothing that changes from run to run, or might be a value. */
export function isStableName(eventType: string): boolean {
  return stableNameOf(eventType) === true;
}

/** Whether a span's name contains only names, counts and ids, so that redaction may show it. */
export function isStructuralName(eventType: string): boolean {
  return stableNameOf(eventType) !== undefined || eventType === EVENT_TYPE.invocation;
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
const COUNTS = / \([^()]*\b\d+\b[^()]*\)$/;
