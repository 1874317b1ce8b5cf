import { askBridge, bridgeHeaders } from '../cli/bridge/bridge.js';
import { pause } from '../core/clock.js';
import { reachableUrl } from '../core/http-listener.js';
import { splitScope } from '../otlp/scope-path.js';
import { readHolder } from '../storage/data-folder.js';
import type { StepPosition, StepStart } from '../storage/steps.js';
import type { CommandFacts } from './command-facts.js';
import type { BridgeChoice } from './exec-target.js';

/** Reads the choice from what is known of a command. */
export function bridgeChoiceOf({ context, host, options, configuration, isFolderChosen }: CommandFacts): BridgeChoice {
  const userEndpoint = splitScope(context.environment.OTEL_EXPORTER_OTLP_ENDPOINT ?? '').baseUrl || undefined;
  return { context, host, configuration, isFolderChosen, to: options.to, userEndpoint };
}

/** How long a command waits for its run to be known before it starts without that, in milliseconds. */
const IDENTITY_MS = 3_000;

/**
 * Registers a command before it starts, with the bridge that takes its records or in the data folder, so that its environment can
 * name the run. The bridge that takes the records registers it again, which changes nothing.
 * @throws StepRegistryError, StoreError, ConfigurationError, and an error for a bridge that does not answer in time
 */
export async function registerBeforeStart(choice: BridgeChoice, start: StepStart): Promise<StepPosition> {
  const { clock } = choice.context;
  const over = new AbortController();
  const isLate = pause(clock, IDENTITY_MS, over.signal).then(() => {
    throw new Error(`the run could not be registered within ${IDENTITY_MS / 1_000} s`);
  });
  try {
    return await Promise.race([register(choice, start, over.signal), isLate]);
  } finally {
    over.abort();
  }
}

async function register(choice: BridgeChoice, start: StepStart, signal: AbortSignal): Promise<StepPosition> {
  const bridge = await findBridge(choice);
  if (bridge === undefined) {
    const { registerInFolder } = await import('./own-store.js');
    return await registerInFolder(choice, start);
  }
  const { HttpStepRegistry } = await import('../cli/bridge/http-step-registry.js');
  const headers = bridgeHeaders(choice.context.environment, bridge.url);
  const registry = new HttpStepRegistry(bridge.url, { clock: choice.context.clock, signal, headers });
  try {
    return await registry.register(start);
  } finally {
    registry.close();
  }
}

/** The bridge that takes a command's records: `--to`, the user's own endpoint, the one that holds the data folder, the one on the default port. */
export async function findBridge({ configuration, to, isFolderChosen, userEndpoint }: BridgeChoice) {
  // One that does not answer yet may be starting.
  if (to !== undefined) {
    const found = await askBridge(to);
    return { url: found?.otlpUrl ?? to, hasAnswered: found !== undefined };
  }
  const { host, port } = configuration.http;
  const byDefault = isFolderChosen || userEndpoint !== undefined || port === 0 ? [] : [urlOf(host, port)];
  const announced = announcedAddress(configuration['data-dir']);
  for (const address of [userEndpoint, announced, ...byDefault]) {
    const found = address === undefined ? undefined : await askBridge(address);
    if (found !== undefined) return { url: found.otlpUrl, hasAnswered: true };
  }
  return undefined;
}

function urlOf(host: string, port: number): string {
  return reachableUrl(`http://${host.includes(':') ? `[${host}]` : host}:${port}`);
}

/** Where the program that holds a data folder says that it listens; it may have died since. `undefined` where none says so. */
export function announcedAddress(dataFolder: string): string | undefined {
  const address = readHolder(dataFolder)?.address ?? undefined;
  return address === undefined ? undefined : reachableUrl(address);
}
