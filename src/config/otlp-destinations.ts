import { reasonOf } from '../core/reason-of.js';
import type { DestinationConfig } from '../export/destination-config.js';
import { findLoops, loadTls } from '../export/destination-config.js';
import type { Configuration } from './configuration.js';
import { ConfigurationError } from './configuration-error.js';
import { maskUrl } from './mask.js';
import { toDestinationConfig } from './to-destination-config.js';

/** A destination's name, and where it is: without secrets. */
export type NamedPlace = readonly [name: string, where: string];

/** Destinations that speak OTLP; the environment's comes first, and in place of one of its name in the file. */
export function otlpDestinations({
  destinations,
  environmentDestination,
}: Configuration): readonly DestinationConfig[] {
  const fromFile = destinations.filter(({ name }) => name !== environmentDestination?.name);
  const otlp = fromFile.filter(({ exporterModule }) => exporterModule === null).map(toDestinationConfig);
  return environmentDestination === undefined ? otlp : [environmentDestination, ...otlp];
}

/** Where a destination's signals go: the origins of their URLs, each once. */
export function originsOf({ endpoints }: DestinationConfig): readonly string[] {
  return [...new Set(Object.values(endpoints).map(({ url }) => new URL(maskUrl(url)).origin))];
}

/** The same in words, for start lines. */
export function placeOf(config: DestinationConfig): string {
  return originsOf(config).join(' and ');
}

/**
 * Checks destinations as far as possible without loading their code, which takes a while.
 * @returns their addresses; `undefined` if there is a custom exporter, which has to be loaded.
 * @throws ConfigurationError if one is the bridge itself, or a certificate cannot be read.
 */
export async function checkDestinations(
  configuration: Configuration,
  ownHosts: readonly string[],
): Promise<readonly NamedPlace[] | undefined> {
  const otlp = otlpDestinations(configuration);
  const { environmentDestination: fromEnvironment, http, web } = configuration;
  const problems = [...findLoops(otlp, [http, web], ownHosts)];
  for (const { endpoints } of otlp) {
    for (const { tls } of Object.values(endpoints)) {
      await loadTls(tls).catch((error: unknown) => problems.push(reasonOf(error)));
    }
  }
  if (problems.length > 0) throw new ConfigurationError([...new Set(problems)]);
  const hasModule = configuration.destinations.some(
    ({ name, exporterModule }) => exporterModule !== null && name !== fromEnvironment?.name,
  );
  return hasModule ? undefined : otlp.map((config) => [config.name, placeOf(config)]);
}
