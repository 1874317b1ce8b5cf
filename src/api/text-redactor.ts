import { type RedactionLevel, redactionFor } from '../exporter/redaction/redaction-level.js';
import type { Redactor } from '../exporter/redaction/redactor.js';
import { redactorKnowing } from '../exporter/redaction/redactor-knowing.js';
import type { Caller } from './caller.js';
import { may } from './permissions.js';

/**
 * What a caller is shown of a run's texts and commands: all, where they may read artifacts, which have it as well.
 * @param setting `redaction`. @param names of the run's nodes, which texts may show in any case
 */
export function textRedactor(
  caller: Pick<Caller, 'permission'>,
  setting: RedactionLevel,
  names: Iterable<string> = [],
): Redactor {
  const reader = may(caller, 'artifacts:read') ? 'artifactReader' : 'anybodyElse';
  return redactorKnowing(redactionFor(reader, setting), names);
}
