/** What every event type of the engine begins with. */
export const EVENT_TYPE_PREFIX = 'v1.public.events.fusion.';

/** The event type without the public prefix, for example `node.NodeProcessed`; other types come back whole. */
export function shortEventType(eventType: string): string {
  return eventType.startsWith(EVENT_TYPE_PREFIX) ? eventType.slice(EVENT_TYPE_PREFIX.length) : eventType;
}
