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
