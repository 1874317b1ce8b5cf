import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { z } from 'zod';
import { ApiError } from '../api/api-error.js';
import { hashOf, newSecret } from '../api/authenticator.js';
import type { Configuration } from '../config/configuration.js';
import { exchange } from '../core/http-client.js';
import { counted } from '../core/text.js';
import { RunRemovalError, removeRunOnce } from '../retention/feature.js';
import { API_PATH } from '../run/api-path.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import { DataFolderInUseError } from '../storage/data-folder-in-use-error.js';
import { type DataFolderLock, STATE_FILE, takeDataFolder } from '../storage/data-folder-lock.js';
import { askBridge } from './bridge/ask-bridge.js';
import { bridgeHeaders } from './bridge/bridge-headers.js';
import { bridgeUrl, reachableUrl } from './bridge/post-otlp.js';
import { CliError } from './cli-error.js';
import type { Invocation } from './command-line.js';
import { EXIT, type ExitCode } from './exit-code.js';
import { withState } from './folder-state.js';
import type { ProcessContext } from './process-context.js';
import { refuseElsewhere } from './refuse-elsewhere.js';
import { resolveForCommand } from './resolve-for-command.js';
import { withRetention } from './retain.js';

/** A run that is to be removed. */
interface Wish {
  /** The run's number, or a trace or invocation id. */
  readonly name: string;
  readonly accountId: number;
  readonly isWithShared: boolean;
}

/** How long the token is good that a bridge on the own data folder is asked with, in milliseconds. */
const TOKEN_MS = 120_000;
/** How long a bridge may take; it answers when the run is out of the way. */
const ANSWER_MS = 60_000;
const MAX_ANSWER_BYTES = 1024 * 1024;

/** What `run-bridge delete` does. @throws CliError, ConfigurationError, StoreError, DataFolderInUseError */
export async function deleteRun(invocation: Invocation): Promise<ExitCode> {
  const { context, operands, flags, switches } = invocation;
  const wish: Wish = {
    name: readName(operands[0] ?? ''),
    accountId: readAccount(flags.account),
    isWithShared: switches.has('with-shared'),
  };
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  if (!switches.has('yes') && !(await isConfirmed(wish, context))) {
    context.stderr.write('run-bridge: nothing was deleted\n');
    return EXIT.failed;
  }
  const ids = await removed(invocation, configuration, wish);
  context.stdout.write(`deleted ${counted(ids.length, 'run')}: ${ids.join(', ')}\n`);
  return EXIT.ok;
}

async function removed(invocation: Invocation, configuration: Configuration, wish: Wish): Promise<readonly number[]> {
  const { context, flags } = invocation;
  if (flags.to !== undefined) {
    const url = bridgeUrl(flags.to);
    return await removedAt(url, wish, bridgeHeaders(context.environment, url));
  }
  refuseElsewhere(configuration);
  const folder = configuration['data-dir'];
  if (configuration.processes === 'several') {
    throw new CliError(EXIT.usage, 'several processes share the database: ask one of them, with --to');
  }
  if (configuration['database-url'] === 'off' && !existsSync(join(folder, STATE_FILE)))
    throw unknown(wish.name, folder);
  const lock = take(folder, context);
  if (typeof lock === 'string') return await removedWithToken(invocation, lock, wish);
  try {
    return await withRetention(configuration, context, { isDry: false }, (host) =>
      removeRunOnce(configuration, host, wish),
    );
  } catch (error) {
    if (error instanceof RunRemovalError) throw new CliError(EXIT.failed, error.message, { cause: error });
    if (error instanceof ApiError && error.status === 404) throw unknown(wish.name, folder);
    throw error;
  } finally {
    lock.release();
  }
}

/** The folder's lock, or the address of the bridge that has it. @throws DataFolderInUseError */
function take(folder: string, { pid, clock }: ProcessContext): DataFolderLock | string {
  try {
    return takeDataFolder(folder, pid, clock.nowUnixMs());
  } catch (error) {
    const address = error instanceof DataFolderInUseError ? error.holder?.address : undefined;
    if (address === undefined || address === null) throw error;
    return reachableUrl(address);
  }
}

/** Whoever can write the state of a bridge can make tokens: this one is for one request. */
async function removedWithToken(invocation: Invocation, url: string, wish: Wish): Promise<readonly number[]> {
  const { clock } = invocation.context;
  let ids: readonly number[] = [];
  await withState(invocation, 'runs', async ({ tokens }) => {
    const secret = newSecret();
    const nowUnixMs = clock.nowUnixMs();
    const { id } = await tokens.add({
      accountId: wish.accountId,
      name: `run-bridge delete ${wish.name}`,
      userName: null,
      permission: 'admin',
      hash: hashOf(secret).toString('hex'),
      createdUnixMs: nowUnixMs,
      expiresUnixMs: nowUnixMs + TOKEN_MS,
    });
    try {
      ids = await removedAt(url, wish, { authorization: `Bearer ${secret}` });
    } finally {
      await tokens.revoke(id, clock.nowUnixMs());
    }
    return EXIT.ok;
  });
  return ids;
}

const answerSchema = z.object({
  status: z.object({ user_message: z.string() }),
  data: z.object({ removed_run_ids: z.array(z.number()) }).nullable(),
});

/** Asks a bridge. @throws CliError */
async function removedAt(
  baseUrl: string,
  { name, isWithShared }: Wish,
  headers: Readonly<Record<string, string>>,
): Promise<readonly number[]> {
  const bridge = await askBridge(baseUrl);
  if (bridge === undefined) throw new CliError(EXIT.failed, `no run-bridge answers at ${baseUrl}`);
  const query = isWithShared ? '?with_shared=true' : '';
  const url = new URL(`${bridge.webUrl}${API_PATH}/runs/${encodeURIComponent(name)}${query}`);
  const { status, body } = await exchange(
    { method: 'DELETE', url, headers, onStale() {} },
    { signal: AbortSignal.timeout(ANSWER_MS), maxBodyBytes: MAX_ANSWER_BYTES },
  );
  const { data: answer } = answerSchema.safeParse(parseJson(Buffer.from(body).toString()));
  if (answer?.data != null) return answer.data.removed_run_ids;
  if (status === 401)
    throw new CliError(EXIT.failed, `${baseUrl} asks for a token that is good there: set RUN_BRIDGE_TOKEN`);
  if (status === 404) throw unknown(name, baseUrl);
  throw new CliError(EXIT.failed, answer?.status.user_message ?? `${baseUrl} answered ${status}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @throws CliError where nobody can be asked */
async function isConfirmed({ name, isWithShared }: Wish, context: ProcessContext): Promise<boolean> {
  const { stdin, stderr, isStdinTerminal, stop } = context;
  if (!isStdinTerminal) {
    throw new CliError(
      EXIT.usage,
      'deleting a run cannot be undone: confirm it with --yes, since nobody can be asked here',
    );
  }
  const lines = createInterface({ input: stdin, output: stderr });
  try {
    const what = isWithShared ? `run ${name} and the runs that share its trace` : `run ${name}`;
    const answer = await lines.question(`Delete ${what} with all data? It cannot be undone. [y/N] `, { signal: stop });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}

/** @throws CliError */
function readName(text: string): string {
  if (/^\d{1,15}$/.test(text) || /^[\da-f]{32}$/i.test(text) || /^[\da-f-]{36}$/i.test(text)) return text;
  throw new CliError(
    EXIT.usage,
    `${JSON.stringify(text)} is neither the number of a run nor a trace id; run-bridge runs lists runs`,
  );
}

/** @throws CliError */
function readAccount(text: string | undefined): number {
  if (text === undefined) return FIRST_ACCOUNT_ID;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, `--account: ${JSON.stringify(text)} is not the number of an account`);
}

function unknown(name: string, where: string): CliError {
  return new CliError(EXIT.failed, `no run ${name} is known in ${where}; run-bridge runs lists those of a data folder`);
}
