import { dirname } from 'node:path';
import type { z } from 'zod';
import { type ConfigurationFile, parseConfigurationFile } from './configuration-file.js';
import type { Environment } from './environment.js';
import { type FileValues, fileSchema, knownNames } from './file-schema.js';
import type { FoundFile } from './find-configuration-file.js';
import { maskUrl } from './mask.js';
import { nearestName } from './suggestion.js';

/** What a configuration file sets, and what is wrong with it. */
export interface FileReading {
  readonly path: string;
  /** `undefined` where there are problems. */
  readonly values: FileValues | undefined;
  readonly problems: readonly string[];
  /** `path:line` of a key or value in it. */
  locate(keys: readonly PropertyKey[]): string;
}

/** What reading the file takes beside its text. */
export interface FileReadingContext {
  readonly environment: Environment;
  readonly homeDir: string;
  /** Names of the mapping switches. */
  readonly mappingSwitches: readonly string[];
}

/**
 * Reads a configuration file. Brings the packages for YAML and schemas, so commands load this module only where there is a
 * file.
 * @throws ConfigurationError when it is not YAML, or names an environment variable that is not set.
 */
export function readConfigurationFile(found: FoundFile, context: FileReadingContext): FileReading {
  const file = parseConfigurationFile(found, context.environment);
  const { path, locate } = file;
  const switches = context.mappingSwitches;
  const schema = fileSchema({ baseDir: dirname(path), homeDir: context.homeDir }, switches);
  const result = schema.safeParse(file.content);
  if (result.success) return { path, locate, values: result.data, problems: [] };
  const problems = result.error.issues.flatMap((issue) => describeIssue(issue, file, switches));
  return { path, locate, values: undefined, problems };
}

function describeIssue(issue: z.core.$ZodIssue, file: ConfigurationFile, switches: readonly string[]): string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => {
      const nearest = nearestName(key, knownNames(issue.path, switches));
      const hint = nearest === undefined ? 'see "run-bridge config" for all of them' : `did you mean ${nearest}?`;
      return `${file.locate([...issue.path, key])}: ${[...issue.path, maskUrl(key)].join('.')} is not a setting; ${hint}`;
    });
  }
  // A name that is refused stands in an issue of its own inside the record's issue.
  const message = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
  return [`${file.locate(issue.path)}: ${[...issue.path, message].join('.').replace(`.${message}`, ` ${message}`)}`];
}
