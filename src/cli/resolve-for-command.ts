import { systemMachine } from '../component/machine.js';
import type { ResolvedConfiguration } from '../config/configuration.js';
import { defaultMaxMemoryBytes } from '../config/default-max-memory.js';
import { resolveConfiguration } from '../config/resolve-configuration.js';
import { DEFAULT_MAPPING_SWITCHES } from '../exporter/mapping/mapping-switches.js';
import type { Invocation } from './command-line.js';

/** The configuration of a command. @throws ConfigurationError */
export function resolveForCommand({ context, flags }: Invocation): ResolvedConfiguration {
  const { environment, homeDir, workingDir } = context;
  const maxMemoryBytes = defaultMaxMemoryBytes(systemMachine);
  const mappingDefaults = DEFAULT_MAPPING_SWITCHES;
  return resolveConfiguration({ flags, environment, workingDir, homeDir, maxMemoryBytes, mappingDefaults });
}
