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
