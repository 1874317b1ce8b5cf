import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { askBridge, bridgeHeaders } from '../cli/bridge/bridge.js';
import { pause } from '../core/clock.js';
import { reachableUrl } from '../core/http-listener.js';
import { lazy } from '../core/lazy.js';
import { splitScope } from '../otlp/scope-path.js';
import { DataFolderInUseError, readHolder } from '../storage/data-folder.js';
import type { StepPosition, StepStart } from '../storage/steps.js';
import { hasWebhooks } from '../webhook/feature.js';
import type { CommandFacts } from './command-facts.js';
import { SPOOL_FOLDER } from './command-folder.js';
import type { BridgeChoice, ExecTarget, StepTarget, TargetChoice } from './exec-target.js';

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
    const { registerInFolder } = await import('./local-store.js');
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

/**
 * Where the records of a command go. The command's start is registered with a running bridge at once. The data folder is opened
 * at once where others can write to its state, or webhooks tell of the beginning; else when the first records come. Of a
 * command that had none, its step alone is noted there.
 */
export class CommandTarget {
  private readonly bridge: Promise<ExecTarget | undefined>;
  private readonly store = lazy(() => this.openStore());
  private readonly registry = lazy(() => this.openRegistry());
  /** Resolves when the store is being opened, or need not be before there are records. Never rejects. */
  private readonly early: Promise<void>;

  constructor(
    private readonly choice: TargetChoice,
    private readonly start: StepStart,
  ) {
    this.bridge = chooseBridge(choice).then(async (bridge) => bridge && (await this.begun(bridge)));
    this.early = this.openEarly().catch(() => undefined);
  }

  /** Opens it for records. @throws StoreError, ConfigurationError, DataFolderInUseError */
  open(): Promise<ExecTarget> {
    return this.store.get();
  }

  /** Opens it to note the step's end; no records come any more. @throws as `open` */
  async openForEnd(): Promise<StepTarget> {
    await this.early;
    if (this.store.isNeeded || this.hasLeftovers()) return await this.open();
    return await this.registry.get();
  }

  /**
   * What knows whether the run was cancelled.
   * @throws where nobody but this process can cancel it, and as `open`
   */
  async forCancellation(): Promise<StepTarget> {
    const bridge = await this.bridge;
    if (bridge !== undefined) return bridge;
    if (this.choice.configuration['database-url'] === 'off') throw new Error('no other process uses the data folder');
    return await this.open();
  }

  /** Closes what was opened. */
  async close(deadline: AbortSignal): Promise<void> {
    await this.early;
    const opened = (await this.store.ifNeeded()) ?? (await this.registry.ifNeeded());
    await (opened ?? (await this.bridge.catch(() => undefined)))?.close(deadline);
  }

  private async openEarly(): Promise<void> {
    if ((await this.bridge) !== undefined) return;
    const { configuration, context, host } = this.choice;
    const isShared = configuration['database-url'] !== 'off';
    if (!isShared && (await host.askState(configuration, context.clock, hasWebhooks)) !== true) return;
    // The sender tries again, and its answer says why it failed.
    this.open().catch(() => undefined);
  }

  private async openStore(): Promise<ExecTarget> {
    const bridge = await this.bridge;
    if (bridge !== undefined) return bridge;
    const { openLocalStore } = await import('./local-store.js');
    return this.begun(await openFolder(this.choice, () => openLocalStore(this.choice)));
  }

  private async openRegistry(): Promise<StepTarget> {
    const bridge = await this.bridge;
    if (bridge !== undefined) return bridge;
    const { openLocalRegistry } = await import('./local-store.js');
    return this.begun(await openFolder(this.choice, () => openLocalRegistry(this.choice)));
  }

  /** Where it fails, the end says it, once more with the beginning. */
  private async begun<Target extends StepTarget>(target: Target): Promise<Target> {
    await target.registry.register(this.start).catch(() => undefined);
    return target;
  }

  /** Whether other commands left telemetry behind, which is taken in by a store alone. */
  private hasLeftovers(): boolean {
    try {
      const names = readdirSync(join(this.choice.configuration['data-dir'], SPOOL_FOLDER));
      return names.some((name) => name !== this.start.stepId);
    } catch {
      return false;
    }
  }
}

/** How often a data folder that another command holds is tried again, in milliseconds. */
const FOLDER_RETRY_MS = 300;

/** A bridge that takes the records: `--to`, the user's own endpoint, the one that holds the data folder, the one on the default port. */
export async function chooseBridge(choice: TargetChoice): Promise<ExecTarget | undefined> {
  const found = await findBridge(choice);
  return found === undefined ? undefined : handOver(found.url, choice, found.hasAnswered);
}

/**
 * The data folder, where no bridge was found. One that another command holds just now is waited for; where a bridge has
 * come to hold it meanwhile, that one takes the records.
 * @param open opens the folder, or as much of it as is needed
 * @throws StoreError, ConfigurationError; DataFolderInUseError when it was waited for in vain.
 */
export async function openFolder<Target>(
  choice: TargetChoice,
  open: () => Promise<Target>,
): Promise<Target | ExecTarget> {
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof DataFolderInUseError) || choice.giveUp.aborted) throw error;
      choice.onTrouble(error.message);
      const holder = error.holder?.address;
      const found = typeof holder === 'string' ? await askBridge(reachableUrl(holder)) : undefined;
      if (found !== undefined) return await handOver(found.otlpUrl, choice, true);
      await pause(choice.context.clock, FOLDER_RETRY_MS, choice.giveUp);
    }
  }
}

async function handOver(url: string, choice: TargetChoice, hasAnswered: boolean): Promise<ExecTarget> {
  const { handOverTo } = await import('./hand-over.js');
  return await handOverTo(url, choice, hasAnswered);
}
