import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ApiError } from '../api/api-error.js';
import { addressOfHolder, askOfRun, readRunName, unknownRun, withBriefToken } from '../cli/bridge/own-bridge.js';
import { CliError, EXIT, type ExitCode, type Invocation, readAccount } from '../cli/command.js';
import { readExportConfiguration, refuseElsewhere } from '../cli/command-configuration.js';
import { loggerOf } from '../cli/logger.js';
import type { CommandHost, CommandStore } from '../feature.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import { STATE_FILE } from '../storage/data-folder.js';
import { RunResendError } from './run-resender.js';

/** A run that is to be sent. */
interface Wish {
  /** The run's number, or a trace or invocation id. */
  readonly name: string;
  readonly accountId: number;
  /** `null`: all. */
  readonly destination: string | null;
}

/** How long destinations may take, in milliseconds; the next `serve` goes on. */
const EXPORT_MS = 60_000;
const DRAIN_MS = 7_000;

/** Runs `run-bridge export`. @throws CliError, ConfigurationError, StoreError, DataFolderInUseError */
export async function runExportCommand(
  invocation: Invocation,
  host: Pick<CommandHost, 'openStore' | 'withState'>,
): Promise<ExitCode> {
  const { operands, flags } = invocation;
  const wish: Wish = {
    name: readRunName(operands[0] ?? ''),
    accountId: readAccount(flags.account) ?? FIRST_ACCOUNT_ID,
    destination: flags.to ?? null,
  };
  const configuration = await readExportConfiguration(invocation);
  refuseElsewhere(configuration);
  if (configuration['database-url'] === 'off' && !existsSync(join(configuration['data-dir'], STATE_FILE))) {
    throw unknownRun(wish.name, configuration['data-dir']);
  }
  const { context } = invocation;
  const logger = loggerOf(configuration, context);
  const store = await host.openStore({ ...configuration, jsonl: 'off' }, context, logger).catch(addressOfHolder);
  if (typeof store !== 'string') return sendFromHere(invocation, store, wish);
  return sendFromBridge(invocation, host, store, wish);
}

const sentSchema = z.object({ run_id: z.number(), destinations: z.array(z.string()) });

async function sendFromBridge(
  invocation: Invocation,
  { withState }: Pick<CommandHost, 'withState'>,
  url: string,
  wish: Wish,
): Promise<ExitCode> {
  const { name, accountId, destination } = wish;
  const suffix = `/export${destination === null ? '' : `?to=${encodeURIComponent(destination)}`}`;
  const sent = await withBriefToken(
    withState,
    invocation,
    { accountId, name: `run-bridge export ${name}` },
    (headers) => askOfRun(url, { method: 'POST', name, suffix }, headers, sentSchema),
  );
  const where = sent.destinations.join(', ');
  invocation.context.stdout.write(`the bridge at ${url} sends run ${sent.run_id} to ${where} again\n`);
  return EXIT.ok;
}

async function sendFromHere(
  { context }: Invocation,
  { program, resender }: CommandStore,
  wish: Wish,
): Promise<ExitCode> {
  const { stdout, stderr, stop } = context;
  await program.start();
  try {
    const { runId, destinations } = await resender.resend(wish.accountId, wish.name, wish.destination);
    const isSent = await program.exported(AbortSignal.any([stop, AbortSignal.timeout(EXPORT_MS)]));
    if (isSent) stdout.write(`sent run ${runId} to ${destinations.join(', ')} again\n`);
    else stderr.write('run-bridge: not everything is exported yet; the next run-bridge serve continues\n');
    return isSent ? EXIT.ok : EXIT.failed;
  } catch (error) {
    if (error instanceof RunResendError) throw new CliError(EXIT.failed, error.message, { cause: error });
    if (error instanceof ApiError && error.status === 404) throw unknownRun(wish.name, 'the data folder');
    throw error;
  } finally {
    await program.shutdown(AbortSignal.timeout(DRAIN_MS));
  }
}
