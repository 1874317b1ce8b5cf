import { EVENT_TYPE_PREFIX } from '../schema/public-schema.js';

/** The event type without the public prefix, for example `node.NodeProcessed`; other types come back whole. */
export function shortEventType(eventType: string): string {
  return eventType.startsWith(EVENT_TYPE_PREFIX) ? eventType.slice(EVENT_TYPE_PREFIX.length) : eventType;
}
