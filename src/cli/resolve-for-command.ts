import type { ResolvedConfiguration } from '../config/configuration.js';
import { resolveConfiguration } from '../config/resolve-configuration.js';
import { DEFAULT_MAPPING_SWITCHES } from '../exporter/mapping/mapping-switches.js';
import type { Invocation } from './command-line.js';

/** The configuration of a command. @throws ConfigurationError */
export function resolveForCommand({ context, flags }: Invocation): ResolvedConfiguration {
  const { environment, homeDir, workingDir } = context;
  return resolveConfiguration({ flags, environment, workingDir, homeDir, mappingDefaults: DEFAULT_MAPPING_SWITCHES });
}
