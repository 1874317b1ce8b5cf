/**
 * The last part of an event type, for example `NodeProcessed` of `v1.public.events.fusion.node.NodeProcessed`. The middle
 * of the name changes with the engine (`v1.public.events.<engine>.…`), the last part does not.
 */
export function eventName(eventType: string): string {
  return eventType.slice(eventType.lastIndexOf('.') + 1);
}
