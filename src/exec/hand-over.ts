import { askBridge, bridgeHeaders, type FoundBridge } from '../cli/bridge/bridge.js';
import { HttpArtifactSink } from '../cli/bridge/http-artifact-sink.js';
import { HttpConsumer } from '../cli/bridge/http-consumer.js';
import { HttpStepRegistry } from '../cli/bridge/http-step-registry.js';
import { otlpReading } from '../cli/otlp-reading.js';
import type { Configuration } from '../config/configuration.js';
import { destinationOrigins } from '../config/otlp-destinations.js';
import type { Delivery } from '../record/record-batch.js';
import type { ExecTarget, TargetChoice } from './exec-target.js';
import { Leftovers } from './leftovers.js';

/**
 * Hands over to a bridge that runs, and takes along what earlier commands could not hand over to the same `--to`.
 * @param hasAnswered whether a run-bridge has answered there already
 */
export async function handOverTo(
  baseUrl: string,
  { context, configuration, to, userEndpoint, logger, giveUp, onTrouble }: TargetChoice,
  hasAnswered: boolean,
): Promise<ExecTarget> {
  const { clock, pid } = context;
  const patience = { maxWaitMs: Number.POSITIVE_INFINITY, onWaiting: onTrouble, onGoingOn() {} };
  const headers = bridgeHeaders(context.environment, baseUrl);
  const isBridge = hasAnswered || undefined;
  const consumer = new HttpConsumer(baseUrl, clock, giveUp, patience, headers, isBridge);
  const registry = new HttpStepRegistry(baseUrl, { clock, signal: giveUp, headers });
  const artifacts = new HttpArtifactSink(baseUrl, clock, headers);
  const spooled = new HttpConsumer(baseUrl, clock, giveUp, { ...patience, onWaiting() {} }, headers);
  const leftovers = new Leftovers(configuration['data-dir'], to ?? null, {
    ...{
      consumer: spooled,
      registry,
      artifacts,
      otlp: () => otlpReading(configuration['engine-names']),
      settle: () => spooled.finish(),
      clock,
      logger,
      pid,
    },
  });
  // Without `--to` the bridge that has the folder takes it in itself.
  if (to !== undefined) await leftovers.start();
  let isUsed = false;
  return {
    consumer: {
      consume(delivery: Delivery) {
        isUsed = true;
        return consumer.consume(delivery);
      },
    },
    registry,
    artifacts,
    maxArtifactsMs: Number.POSITIVE_INFINITY,
    // The bridge of the user's own endpoint has another data folder than the one in which things are left.
    leftFor: to ?? userEndpoint ?? null,
    where: baseUrl,
    async finish(_traceIds, deadline) {
      await leftovers.looked(deadline);
      const bridge = isUsed ? await askBridge(baseUrl) : undefined;
      return bridge === undefined ? null : unservedDestinations(configuration, bridge, to !== undefined);
    },
    settle: () => consumer.finish(),
    async close() {
      await leftovers.shutdown();
      registry.close();
    },
  };
}

/**
 * Says which of the destinations of a command are left out because another bridge took its telemetry, which exports where
 * its own settings name; and what to do. `null` where that bridge is the destination, or exports there, too.
 */
export function unservedDestinations(
  configuration: Configuration,
  bridge: FoundBridge,
  isNamed: boolean,
): string | null {
  const served = new Set([bridge.otlpUrl, ...bridge.exportsTo].map(originOf));
  const left = destinationOrigins(configuration).flatMap(({ name, isOfEnvironment, origins }) => {
    if (origins.every((origin) => served.has(originOf(origin)))) return [];
    const label = isOfEnvironment ? ENVIRONMENT : `destination ${name}`;
    return [`${label} (${origins.join(' and ')})`];
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
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}`.replace(/\/\/(localhost|\[::1\])(?=:|$)/, '//127.0.0.1');
}
