import type { ResolvedConfiguration } from '../config/configuration.js';
import { defaultMaxMemoryBytes } from '../config/default-max-memory.js';
import { findConfigurationFile } from '../config/find-configuration-file.js';
import { DEFAULT_MAPPING_SWITCHES } from '../config/mapping-options.js';
import { unreadableFilesOf } from '../config/otlp-destinations.js';
import { resolveConfiguration } from '../config/resolve-configuration.js';
import { systemMachine } from '../core/guard.js';
import { cleanLine } from '../core/text.js';
import type { Invocation } from './command-line.js';

/** The configuration of a command that exports nothing: what is said of destinations is not read. @throws ConfigurationError */
export function resolveForCommand(invocation: Invocation): Promise<ResolvedConfiguration> {
  return resolve(invocation, false);
}

/**
 * The configuration of `serve` and its like, for which destinations are meant. OpenTelemetry's variables may have been set for
 * other programs: a destination of theirs that cannot be used is off, with a warning.
 * @throws ConfigurationError
 */
export async function resolveWithDestinations(invocation: Invocation): Promise<ResolvedConfiguration> {
  const resolved = await resolve(invocation, true);
  const { environmentDestination, environmentTrouble } = resolved.configuration;
  const [problem] = environmentDestination === undefined ? [] : await unreadableFilesOf(environmentDestination);
  if (problem === undefined) return resolved;
  const trouble = { ignored: [], ...environmentTrouble, offReason: problem };
  return {
    ...resolved,
    configuration: { ...resolved.configuration, environmentDestination: undefined, environmentTrouble: trouble },
    warnings: [...resolved.warnings, `${cleanLine(problem)}; nothing is exported to OTEL_EXPORTER_OTLP_ENDPOINT`],
  };
}

async function resolve({ context, flags }: Invocation, isExporting: boolean): Promise<ResolvedConfiguration> {
  const { environment, homeDir, workingDir } = context;
  const maxMemoryBytes = defaultMaxMemoryBytes(systemMachine);
  const mappingDefaults = DEFAULT_MAPPING_SWITCHES;
  const found = findConfigurationFile({ flag: flags.config, environment, workingDir, homeDir });
  const reader = found === undefined ? undefined : await import('../config/read-configuration-file.js');
  const mappingSwitches = Object.keys(mappingDefaults);
  const file = found && reader?.readConfigurationFile(found, { environment, homeDir, mappingSwitches, isExporting });
  const sources = { flags, environment, workingDir, homeDir, maxMemoryBytes, mappingDefaults, isExporting };
  const resolved = resolveConfiguration(sources, file);
  return { ...resolved, warnings: resolved.warnings.map(cleanLine) };
}
