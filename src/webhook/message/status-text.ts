import type { Redactor } from '../../exporter/redaction/redactor.js';

/** How a command ended, in the words of `endingWords`: the bridge's own, with no value of anybody's project in them. */
const OWN_ENDING =
  /(?:^The|; the) command (?:ended with exit code \d{1,3}(?: \(as a shell says of a command killed by SIG[A-Z]+\))?|was killed by SIG[A-Z]+|ended, nobody knows how)$/;
/** Counts, as verdicts have them. */
const OWN_COUNT = /^\d{1,9} (?:nodes?|errors?)(?: failed)?$/;

/** Why a run or a step did not end well, redacted but for what the bridge itself says. */
export function statusText(message: string, redactor: Pick<Redactor, 'text'>): string {
  if (OWN_COUNT.test(message)) return message;
  const own = OWN_ENDING.exec(message);
  return own === null ? redactor.text(message) : `${redactor.text(message.slice(0, own.index))}${own[0]}`;
}
