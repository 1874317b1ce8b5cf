import { type RedactionLevel, redactionFor } from '../redaction/redaction-policy.js';
import { Redactor } from '../redaction/redactor.js';
import type { Caller } from './caller.js';
import { may } from './permissions.js';

/**
 * What a caller is shown of a run's texts and commands: all, where they may read artifacts, which have it as well.
 * It knows the words of the run whose records it is taught (`learnNames`). @param setting `redaction`
 */
export function textRedactor(caller: Pick<Caller, 'permission'>, setting: RedactionLevel): Redactor {
  const reader = may(caller, 'artifacts:read') ? 'artifactReader' : 'anybodyElse';
  return new Redactor(redactionFor(reader, setting));
}
