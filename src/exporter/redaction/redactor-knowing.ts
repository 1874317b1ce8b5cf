import { KnownNames } from './known-names.js';
import type { RedactionLevel } from './redaction-level.js';
import { Redactor } from './redactor.js';

/** What decides how a run's texts are shown to people. @param names of its nodes, which texts may then show */
export function redactorKnowing(level: RedactionLevel, names: Iterable<string>): Redactor {
  const redactor = new Redactor(level, new KnownNames());
  for (const name of names) redactor.learn(name);
  return redactor;
}
