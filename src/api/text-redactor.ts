import { type RedactionLevel, redactionFor } from '../redaction/known-names.js';
import { Redactor } from '../redaction/redactor.js';
import type { Caller } from './caller.js';
import { may } from './permissions.js';

/**
 * A run's texts and commands as a caller may see them: unredacted with the right to read artifacts, which contain them as well.
 * It learns the words of the run from its records (`learnNames`). @param setting `redaction`
 */
export function textRedactor(caller: Pick<Caller, 'permission'>, setting: RedactionLevel): Redactor {
  const reader = may(caller, 'artifacts:read') ? 'artifactReader' : 'anybodyElse';
  return new Redactor(redactionFor(reader, setting));
}
