import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openState } from '../app/open-state.js';
import { bridgeHeaders, bridgeUrl } from '../cli/bridge/bridge.js';
import { HttpStepRegistry } from '../cli/bridge/http-step-registry.js';
import { CliError, EXIT, type ExitCode, type Invocation, type ProcessContext } from '../cli/command.js';
import { readConfiguration, refuseElsewhere } from '../cli/command-configuration.js';
import type { Configuration } from '../config/configuration.js';
import { nonEmpty } from '../config/environment.js';
import { pause } from '../core/clock.js';
import { reachableUrl } from '../core/http-listener.js';
import { silentLogger } from '../core/logger.js';
import { cleanLine, counted } from '../core/text.js';
import { LocalStepRegistry } from '../run/local-step-registry.js';
import { type StepRegistry, StepRegistryError } from '../run/step-registry.js';
import { DataFolderInUseError, STATE_FILE } from '../storage/data-folder.js';
import { type DataFolderLock, takeDataFolder } from '../storage/data-folder-lock.js';
import type { FinishResult } from '../storage/execution-store.js';
import type { ExecutionRow } from '../storage/executions.js';

/** How long to wait for a folder that a command without a port uses, in milliseconds: another `exec` that is about to end. */
const FOLDER_WAIT_MS = 10_000;
const FOLDER_POLL_MS = 100;

/** What `run-bridge finish` does. @throws CliError, ConfigurationError, StoreError */
export async function finishRun(invocation: Invocation): Promise<ExitCode> {
  const { context, operands, flags } = invocation;
  const runKey = (operands[0] ?? context.environment.RUN_BRIDGE_RUN_ID ?? '').trim();
  if (runKey === '') {
    throw new CliError(EXIT.usage, 'no run given: pass the --run-id of its exec commands, or set RUN_BRIDGE_RUN_ID');
  }
  const to = flags.to ?? nonEmpty(context.environment.RUN_BRIDGE_TO);
  if (to !== undefined) return await finishAt(bridgeUrl(to), runKey, context);
  const configuration = await readConfiguration(invocation);
  const folder = configuration['data-dir'];
  // Nothing is made where nothing was: a mistyped folder stays away.
  const isElsewhere = configuration['database-url'] !== 'off';
  refuseElsewhere(configuration);
  if (!isElsewhere && !existsSync(join(folder, STATE_FILE))) throw unknownRun(runKey, folder);
  const lock = await takeFolder(folder, context);
  if (typeof lock === 'string') return await finishAt(lock, runKey, context);
  try {
    return await finishHere(configuration, runKey, context);
  } finally {
    lock.release();
  }
}

async function finishHere(configuration: Configuration, runKey: string, context: ProcessContext): Promise<ExitCode> {
  const folder = configuration['data-dir'];
  const state = await openState(configuration, context.clock);
  const { executions: store, runs } = state;
  const { clock } = context;
  const registry = new LocalStepRegistry({ store, runs, listeners: [], clock, logger: silentLogger });
  try {
    // The program that ran its steps ended with the folder's lock: its steps do not stay open.
    await registry.start();
    return say(await ask(registry, runKey), runKey, folder, context);
  } finally {
    await registry.shutdown();
    await state.close();
  }
}

async function finishAt(url: string, runKey: string, context: ProcessContext): Promise<ExitCode> {
  const headers = bridgeHeaders(context.environment, url);
  const registry = new HttpStepRegistry(url, { clock: context.clock, signal: context.stop, headers });
  return say(await ask(registry, runKey), runKey, url, context);
}

/** The folder's lock, or the address of the bridge that holds it. */
async function takeFolder(folder: string, { clock, pid, stop }: ProcessContext): Promise<DataFolderLock | string> {
  for (const startMs = clock.monotonicMs(); ; await pause(clock, FOLDER_POLL_MS, stop)) {
    try {
      return takeDataFolder(folder, pid, clock.nowUnixMs());
    } catch (error) {
      if (!(error instanceof DataFolderInUseError)) throw error;
      const address = error.holder?.address ?? undefined;
      if (address !== undefined) return reachableUrl(address);
      stop.throwIfAborted();
      if (clock.monotonicMs() - startMs > FOLDER_WAIT_MS) throw stillInUse(error);
    }
  }
}

async function ask(registry: StepRegistry, runKey: string): Promise<FinishResult> {
  try {
    return await registry.finish(runKey);
  } catch (error) {
    if (error instanceof StepRegistryError) throw new CliError(EXIT.failed, error.message, { cause: error });
    throw error;
  }
}

/** @throws CliError for an unknown run. */
function say(result: FinishResult, runKey: string, where: string, { stderr }: ProcessContext): ExitCode {
  switch (result.kind) {
    case 'unknownRun':
      throw unknownRun(runKey, where);
    case 'finished':
      stderr.write(`${named(result.run)} is finished: ${steps(result.run)}\n`);
      return EXIT.ok;
    case 'closing':
      stderr.write(`${named(result.run)} accepts no more steps; it finishes when ${underWay(result.runningCount)}\n`);
      return EXIT.ok;
    case 'alreadyFinished':
      stderr.write(`${named(result.run)} was already finished: ${steps(result.run)}\n`);
      return EXIT.ok;
  }
}

/** Another process has the folder and does not listen: a step is running, or files are followed or imported. */
function stillInUse(error: DataFolderInUseError): CliError {
  const holder = error.holder === undefined ? 'another process' : `process ${error.holder.pid}`;
  const hint = 'try again when it is done, or give the last step --last, which finishes the run with it';
  return new CliError(EXIT.failed, `${error.folder} is in use by ${holder}; ${hint}`, { cause: error });
}

function unknownRun(runKey: string, where: string): CliError {
  const hint = 'check the spelling; runs are named with exec --run-id, and --data-dir or --to say where they are';
  return new CliError(EXIT.failed, `no run ${JSON.stringify(runKey)} is known in ${where}; ${hint}`);
}

function named({ runId, runKey, job }: ExecutionRow): string {
  return cleanLine(`run ${runId} (${JSON.stringify(runKey)}, job ${job})`);
}

function steps({ stepCount, failedStepCount }: ExecutionRow): string {
  const all = counted(stepCount, 'step');
  if (failedStepCount === 0) return all;
  return stepCount === 1 ? `${all}, which failed` : `${all}, ${failedStepCount} of them failed`;
}

function underWay(count: number): string {
  return count === 1 ? 'the step that is under way has ended' : `the ${count} steps that are under way have ended`;
}
