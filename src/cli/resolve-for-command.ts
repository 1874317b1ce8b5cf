import type { ResolvedConfiguration } from '../config/configuration.js';
import { defaultMaxMemoryBytes } from '../config/default-max-memory.js';
import { findConfigurationFile } from '../config/find-configuration-file.js';
import { DEFAULT_MAPPING_SWITCHES } from '../config/mapping-options.js';
import { resolveConfiguration } from '../config/resolve-configuration.js';
import { systemMachine } from '../core/guard.js';
import type { Invocation } from './command-line.js';

/** The configuration of a command. @throws ConfigurationError */
export async function resolveForCommand({ context, flags }: Invocation): Promise<ResolvedConfiguration> {
  const { environment, homeDir, workingDir } = context;
  const maxMemoryBytes = defaultMaxMemoryBytes(systemMachine);
  const mappingDefaults = DEFAULT_MAPPING_SWITCHES;
  const found = findConfigurationFile({ flag: flags.config, environment, workingDir, homeDir });
  const reader = found === undefined ? undefined : await import('../config/read-configuration-file.js');
  const mappingSwitches = Object.keys(mappingDefaults);
  const file = found && reader?.readConfigurationFile(found, { environment, homeDir, mappingSwitches });
  return resolveConfiguration({ flags, environment, workingDir, homeDir, maxMemoryBytes, mappingDefaults }, file);
}
