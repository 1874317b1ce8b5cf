import { z } from 'zod';
import { hashOf, newSecret } from '../../api/authenticator.js';
import { exchange } from '../../core/http-client.js';
import { reachableUrl } from '../../core/http-listener.js';
import { API_PATH } from '../../run/api-path.js';
import { DataFolderInUseError } from '../../storage/data-folder.js';
import { CliError, EXIT, type Invocation, type WithState } from '../command.js';
import { askBridge, parseAnswer } from './bridge.js';

// How a command names a run of a data folder, and asks the bridge that has the folder to do something with it.

/** How long the token is good that a bridge on the own data folder is asked with, in milliseconds. */
const TOKEN_MS = 120_000;
/** How long a bridge may take, in milliseconds. */
const ANSWER_MS = 60_000;
const MAX_ANSWER_BYTES = 1024 * 1024;

/** A run's number, or a trace or invocation id. @throws CliError for anything else */
export function readRunName(text: string): string {
  if (/^\d{1,15}$/.test(text) || /^[\da-f]{32}$/i.test(text) || /^[\da-f-]{36}$/i.test(text)) return text;
  throw new CliError(
    EXIT.usage,
    `${JSON.stringify(text)} is neither the number of a run nor a trace id; run-bridge runs lists runs`,
  );
}

/** Nobody knows the run there. */
export function unknownRun(name: string, where: string): CliError {
  return new CliError(EXIT.failed, `no run ${name} is known in ${where}; run-bridge runs lists those of a data folder`);
}

/** The address of the bridge that has the data folder. @throws what was given, where it says no such thing */
export function addressOfHolder(error: unknown): string {
  const address = error instanceof DataFolderInUseError ? error.holder?.address : undefined;
  if (address === undefined || address === null) throw error;
  return reachableUrl(address);
}

/** Does something with a token for a bridge on the own data folder: whoever can write its state can make tokens. This one is revoked at once. */
export async function withBriefToken<T>(
  withState: WithState,
  invocation: Invocation,
  { accountId, name }: { readonly accountId: number; readonly name: string },
  body: (headers: Readonly<Record<string, string>>) => Promise<T>,
): Promise<T> {
  const { clock } = invocation.context;
  return await withState(invocation, 'runs', async ({ tokens }) => {
    const secret = newSecret();
    const nowUnixMs = clock.nowUnixMs();
    const { id } = await tokens.add({
      accountId,
      name,
      userName: null,
      permission: 'admin',
      hash: hashOf(secret).toString('hex'),
      createdUnixMs: nowUnixMs,
      expiresUnixMs: nowUnixMs + TOKEN_MS,
    });
    try {
      return await body({ authorization: `Bearer ${secret}` });
    } finally {
      await tokens.revoke(id, clock.nowUnixMs());
    }
  });
}

const answerSchema = z.object({ status: z.object({ user_message: z.string() }), data: z.unknown() });

/**
 * Asks a bridge to do something with a run.
 * @param suffix what follows the run's name in the path
 * @throws CliError where it does not
 */
export async function askOfRun<Data>(
  baseUrl: string,
  ask: { readonly method: 'DELETE' | 'POST'; readonly name: string; readonly suffix: string },
  headers: Readonly<Record<string, string>>,
  schema: z.ZodType<Data>,
): Promise<Data> {
  const { method, name, suffix } = ask;
  const url = new URL(`${await webUrlOf(baseUrl)}${API_PATH}/runs/${encodeURIComponent(name)}${suffix}`);
  const { status, body } = await exchange(
    { method, url, headers, onStale() {} },
    { signal: AbortSignal.timeout(ANSWER_MS), maxBodyBytes: MAX_ANSWER_BYTES },
  );
  const { data: answer } = answerSchema.safeParse(parseAnswer(body));
  const { data } = schema.safeParse(answer?.data);
  if (data !== undefined) return data;
  if (status === 404) throw unknownRun(name, baseUrl);
  throw refusalOf(baseUrl, status, body);
}

/** The address of a bridge's pages and API, by that of either of its ports. @throws CliError where none answers */
export async function webUrlOf(baseUrl: string): Promise<string> {
  const bridge = await askBridge(baseUrl);
  if (bridge === undefined) throw new CliError(EXIT.failed, `no run-bridge answers at ${baseUrl}`);
  return bridge.webUrl;
}

/** What a bridge says that did not do what it was asked. */
export function refusalOf(baseUrl: string, status: number, body: Uint8Array): CliError {
  if (status === 401)
    return new CliError(EXIT.failed, `${baseUrl} asks for a token that is good there: set RUN_BRIDGE_TOKEN`);
  const { data: answer } = answerSchema.safeParse(parseAnswer(body));
  return new CliError(EXIT.failed, answer?.status.user_message ?? `${baseUrl} answered ${status}`);
}
