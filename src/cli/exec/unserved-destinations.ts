import { originsOf, otlpDestinations } from '../../app/otlp-destinations.js';
import type { Configuration } from '../../config/configuration.js';
import type { FoundBridge } from '../../source/ask-bridge.js';

/**
 * Says which of the destinations of a command are left out because another bridge took its telemetry, which exports where
 * it was told to itself; and what to do. `null` where that bridge is the destination, or exports there, too.
 */
export function unservedDestinations(
  configuration: Configuration,
  bridge: FoundBridge,
  isNamed: boolean,
): string | null {
  const served = new Set([bridge.otlpUrl, ...bridge.exportsTo].map(originOf));
  const left = otlpDestinations(configuration).flatMap((config) => {
    const places = originsOf(config);
    if (places.every((place) => served.has(originOf(place)))) return [];
    const label = config === configuration.environmentDestination ? ENVIRONMENT : `destination ${config.name}`;
    return [`${label} (${places.join(' and ')})`];
  });
  if (left.length === 0) return null;
  const [verb, place] = left.length === 1 ? ['gets', 'there'] : ['get', 'to them'];
  return (
    `${left.join(', ')} ${verb} nothing of this: the run-bridge at ${bridge.otlpUrl} took it and does not export ${place}; ` +
    `start that one with the same destinations, or ${isNamed ? 'leave --to out and ' : ''}give exec a --data-dir of its own`
  );
}

const ENVIRONMENT = 'OTEL_EXPORTER_OTLP_ENDPOINT';

/** One machine has several names for itself. */
function originOf(url: string): string {
  return new URL(url).origin.replace(/\/\/(localhost|\[::1\])(?=:|$)/, '//127.0.0.1');
}
