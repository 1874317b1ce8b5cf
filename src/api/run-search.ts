import { type RedactionLevel, redactionFor } from '../redaction/known-names.js';
import type { CommandDigest } from '../run/measures/command-digest.js';
import type { ErrorTexts } from '../storage/run-catalog.js';
import type { Caller } from './caller.js';
import { may } from './permissions.js';

// How lists of runs say why a run failed, and by which texts it is found there: pages, API and command line alike.

/**
 * Returns the sentence that says why a run failed: `2 nodes failed with an error, 10 tests failed: model orders: relation does not exist`.
 * @param digests of its commands
 * @param level what is shown of texts
 * @returns `null` where nothing is known to have gone wrong
 */
export function causeText(digests: readonly Pick<CommandDigest, 'cause'>[], level: RedactionLevel): string | null {
  const [cause] = digests.flatMap((digest) => digest.cause ?? []);
  if (cause === undefined) return null;
  const { title, label, reason, redactedReason } = cause;
  const shownReason = level === 'off' ? reason : level === 'literals' ? redactedReason : null;
  return [title, label, shownReason].filter((part) => part !== null).join(': ');
}

/** Returns what a caller is shown of texts. @param setting `redaction` */
export function levelFor(caller: Pick<Caller, 'permission'>, setting: RedactionLevel): RedactionLevel {
  return redactionFor(may(caller, 'artifacts:read') ? 'artifactReader' : 'anybodyElse', setting);
}

const SEARCHED: Readonly<Record<RedactionLevel, ErrorTexts>> = {
  off: 'whole',
  literals: 'redacted',
  statements: 'none',
};

/** Returns the filter of a list by a text; a search shows nobody texts that they may not see. @param level what is shown of texts */
export function containing(text: string, level: RedactionLevel) {
  return { textContains: text, errorTexts: SEARCHED[level] };
}
