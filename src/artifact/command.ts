import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { bridgeHeaders, bridgeUrl } from '../cli/bridge/bridge.js';
import { refusalOf, webUrlOf } from '../cli/bridge/own-bridge.js';
import {
  CliError,
  EXIT,
  type ExitCode,
  type Invocation,
  type ProcessContext,
  readAccount,
  type WithState,
} from '../cli/command.js';
import { readConfiguration } from '../cli/command-configuration.js';
import { nonEmpty } from '../config/environment.js';
import { reasonOf } from '../core/errors.js';
import { openExchange, readBounded } from '../core/http-client.js';
import { cleanLine } from '../core/text.js';
import { API_PATH } from '../run/api-path.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import { ArtifactError, type ArtifactPath, encodedArtifactPath, parseArtifactPath } from '../storage/artifacts.js';
import { ArtifactStorage } from './artifact-storage.js';
import { type JobRuns, noArtifactOf, RunArtifacts } from './run-artifacts.js';

/** As much of an answer that refuses is read, in bytes. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** How long a bridge may be silent, in milliseconds. */
const SILENCE_MS = 60_000;

/**
 * Runs `run-bridge artifact get`. It reads the data folder, where a bridge may be at work, or asks a bridge elsewhere.
 * @throws CliError, ConfigurationError, StoreError
 */
export async function getArtifact(invocation: Invocation, withState: WithState): Promise<ExitCode> {
  const { context, operands, flags, switches } = invocation;
  const [action, name = ''] = operands;
  if (action !== 'get') {
    throw new CliError(EXIT.usage, `${JSON.stringify(action)} is no action; run-bridge artifact get PATH is`);
  }
  const path = parseArtifactPath(name);
  if (path === undefined) throw new CliError(EXIT.usage, `${JSON.stringify(name)} is no path of an artifact`);
  if (flags.job === undefined)
    throw new CliError(EXIT.usage, '--job is missing: name the job whose runs are looked at');
  const of: JobRuns = {
    ...{ jobName: flags.job, projectName: flags.project, environmentName: flags.environment },
    isGood: switches.has('last-good'),
  };
  const to = flags.to ?? nonEmpty(context.environment.RUN_BRIDGE_TO);
  if (to !== undefined) await getFrom(bridgeUrl(to), of, path, invocation);
  else await getHere(of, path, invocation, withState);
  return EXIT.ok;
}

async function getHere(of: JobRuns, path: ArtifactPath, invocation: Invocation, withState: WithState): Promise<void> {
  const accountId = readAccount(invocation.flags.account) ?? FIRST_ACCOUNT_ID;
  const configuration = await readConfiguration(invocation);
  await withState(invocation, 'runs', async ({ catalog }) => {
    const storage = new ArtifactStorage(configuration, true);
    try {
      const artifacts = new RunArtifacts({ catalog, openStore: storage.open, dataFolder: configuration['data-dir'] });
      const found = await artifacts.ofJob(accountId, of, path);
      const opened = found && (await artifacts.open(found.step, path));
      if (found === undefined || opened === undefined) {
        throw new CliError(EXIT.failed, `${noArtifactOf(of, path)}; run-bridge runs lists its runs`);
      }
      await write(opened.content, String(found.step.runId), invocation);
    } catch (error) {
      if (error instanceof ArtifactError) throw new CliError(EXIT.failed, error.message, { cause: error });
      throw error;
    } finally {
      await storage.shutdown();
    }
  });
}

async function getFrom(baseUrl: string, of: JobRuns, path: ArtifactPath, invocation: Invocation): Promise<void> {
  const { context, flags } = invocation;
  if (flags.account !== undefined)
    throw new CliError(EXIT.usage, '--account: the token says it where a bridge is asked');
  const headers = bridgeHeaders(context.environment, baseUrl);
  const url = new URL(`${await webUrlOf(baseUrl)}${API_PATH}/artifacts/${encodedArtifactPath(path)}`);
  const { jobName: job, projectName: project, environmentName: environment, isGood } = of;
  for (const [key, value] of Object.entries({ job, project, environment, last_good: String(isGood) })) {
    if (value !== undefined) url.searchParams.set(key, value);
  }
  const silence = new AbortController();
  const timer = setTimeout(() => {
    // Who reads the output may take a while; the bridge waits then.
    if (context.stdout.writableNeedDrain) timer.refresh();
    else silence.abort();
  }, SILENCE_MS);
  try {
    const signal = AbortSignal.any([silence.signal, context.stop]);
    const {
      status,
      headers: answered,
      body,
    } = await openExchange({ method: 'GET', url, headers, onStale() {} }, signal);
    body.on('data', () => timer.refresh());
    if (status !== 200) throw refusalOf(baseUrl, status, (await readBounded(body, MAX_REFUSAL_BYTES)).body);
    body.pause();
    const [, runId = '?'] = /\/runs\/(\d+)\//.exec(answered['content-location'] ?? '') ?? [];
    await write(body, runId, invocation);
  } catch (error) {
    if (error instanceof CliError || context.stop.aborted || isOfFile(error)) throw error;
    const reason = silence.signal.aborted ? `silent for ${SILENCE_MS / 1_000} s` : reasonOf(error);
    throw new CliError(EXIT.failed, `${baseUrl} did not give ${path}: ${cleanLine(reason)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** Whether an error is of the file that is written, and not of the connection. */
function isOfFile(error: unknown): boolean {
  return (
    error instanceof Error && 'syscall' in error && ['mkdir', 'open', 'write', 'rename'].includes(String(error.syscall))
  );
}

/** Writes an artifact to standard output, or to a file that is there when it is complete. */
async function write(content: Readable, runId: string, { context, flags }: Invocation): Promise<void> {
  if (flags.output === undefined) await writeOut(content, context);
  else {
    const file = resolve(context.workingDir, flags.output);
    const part = `${file}.${context.pid}.part`;
    await mkdir(dirname(file), { recursive: true });
    try {
      await pipeline(content, createWriteStream(part), { signal: context.stop });
      await rename(part, file);
    } finally {
      await rm(part, { force: true });
    }
  }
  context.stderr.write(`run-bridge: that of run ${runId}\n`);
}

async function writeOut(content: Readable, { stdout, stop }: ProcessContext): Promise<void> {
  for await (const chunk of content) if (!stdout.write(chunk)) await once(stdout, 'drain', { signal: stop });
}
