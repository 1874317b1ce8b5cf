import { type AttributePolicy, EVENTS, POLICY_BY_KEY } from '../record/event-table.js';
import { eventName } from '../run/node-outcome.js';

/**
 * How much of SQL leaves the machine. `literals` (default): statements stay readable, their literals become `?` and
 * their comments go. `statements`: no SQL at all, a hash instead. `off`: everything as the engine sent it.
 */
export type RedactionLevel = 'literals' | 'statements' | 'off';

/**
 * Who reads a text. `artifactReader`: somebody who is signed in here and may read artifacts, in which every text stands
 * whole. `anybodyElse`: a destination of telemetry, an endpoint of webhooks, a chat, a mailbox, and callers without that right.
 */
export type TextReader = 'artifactReader' | 'anybodyElse';

/** The one place that decides how much of a run's texts somebody is shown. @param setting `redaction`, of all or of the destination */
export function redactionFor(reader: TextReader, setting: RedactionLevel): RedactionLevel {
  return reader === 'artifactReader' ? 'off' : setting;
}

/**
 * The policy of an attribute by its exported key. What is not listed may hold anything, so it is `text`, or `ownWords` in
 * events of which the public schema of this version knows nothing.
 */
export function attributePolicyOf(key: string, eventType: string): AttributePolicy {
  const known = POLICY_BY_KEY.get(key);
  if (known !== undefined) return known;
  if (key.startsWith('extra.')) return 'deny';
  return KNOWN_EVENTS.has(eventName(eventType)) ? 'text' : 'ownWords';
}

/** Events of the public schema, by the last part of their names. */
export const KNOWN_EVENTS: ReadonlySet<string> = new Set([...EVENTS.keys()].map(eventName));
