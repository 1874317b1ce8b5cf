import { type RedactionLevel, redactionFor } from '../redaction/known-names.js';
import { Redactor } from '../redaction/redactor.js';
import type { Caller } from './caller.js';
import { may } from './permissions.js';

/** Shows everything. It learns nothing, so all share it. */
export const UNREDACTED = new Redactor(redactionFor('artifactReader', 'literals'));

/**
 * A run's texts and commands as a caller may see them: unredacted with the right to read artifacts, which contain them as well.
 * It learns the words of the run from its records (`learnNames`). @param setting `redaction`
 */
export function textRedactor(caller: Pick<Caller, 'permission'>, setting: RedactionLevel): Redactor {
  return may(caller, 'artifacts:read') ? UNREDACTED : new Redactor(redactionFor('anybodyElse', setting));
}
