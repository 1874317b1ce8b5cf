import { ApiError } from '../api/api-error.js';
import { RunFinder } from '../api/native/run-finder.js';
import { makeSignInLink } from '../api/sign-in-links.js';
import { openState } from '../app/open-state.js';
import { askBridge, type FoundBridge } from '../cli/bridge/bridge.js';
import { readRunName, unknownRun } from '../cli/bridge/own-bridge.js';
import { CliError, EXIT, type ExitCode, type Invocation } from '../cli/command.js';
import { readConfiguration, refuseElsewhere } from '../cli/command-configuration.js';
import type { Configuration } from '../config/configuration.js';
import { nonEmpty } from '../config/environment.js';
import { reasonOf } from '../core/errors.js';
import { reachableUrl } from '../core/http-listener.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import { readHolder } from '../storage/data-folder.js';
import type { State } from '../storage/state.js';

/**
 * What `run-bridge open` does. The address is printed in any case: whether a browser comes up is not known.
 * @throws CliError where no bridge serves the data folder, and for an unknown run; ConfigurationError, StoreError
 */
export async function openInBrowser(invocation: Invocation): Promise<ExitCode> {
  const { context, operands, switches } = invocation;
  const name = operands[0] === undefined ? null : readRunName(operands[0]);
  const configuration = await readConfiguration(invocation);
  refuseElsewhere(configuration);
  const bridge = await bridgeOf(configuration);
  const url = `${bridge.webUrl}${await pathTo(name, bridge, configuration, invocation)}`;
  context.stdout.write(`${url}\n`);
  const hint = bridge.hasSignInLinks
    ? 'it signs in once, within ten minutes'
    : 'its pages can be reached from other machines, so they ask for a token';
  context.stderr.write(`run-bridge: ${hint}\n`);
  // Over SSH it would come up on the other machine's screen.
  if (switches.has('print') || nonEmpty(context.environment.SSH_CONNECTION) !== undefined) return EXIT.ok;
  const { default: open } = await import('open');
  try {
    await open(url);
  } catch (error) {
    context.stderr.write(`run-bridge: no browser could be started (${reasonOf(error)}); open the address above\n`);
  }
  return EXIT.ok;
}

/** @throws CliError */
async function bridgeOf({ 'data-dir': folder }: Configuration) {
  const address = readHolder(folder)?.address ?? null;
  const bridge = address === null ? undefined : await askBridge(reachableUrl(address));
  if (bridge !== undefined) return bridge;
  throw new CliError(
    EXIT.failed,
    `no bridge serves ${folder}; start one with run-bridge serve, or pass its --data-dir`,
  );
}

/** The path of the page, by a link that signs in where the bridge takes one. @throws CliError */
async function pathTo(
  name: string | null,
  { hasSignInLinks }: FoundBridge,
  configuration: Configuration,
  { context }: Invocation,
): Promise<string> {
  const state = await openState(configuration, context.clock);
  try {
    // Who signs in by a link sees the first account.
    const accountIds = hasSignInLinks ? [FIRST_ACCOUNT_ID] : (await state.accounts.list()).map(({ id }) => id);
    const runId = name === null ? null : await runIdOf(name, accountIds, state);
    if (runId === undefined) throw unknownRun(name ?? '', configuration['data-dir']);
    const page = runId === null ? '/' : `/runs/${runId}`;
    return hasSignInLinks ? await makeSignInLink(state.tokens, context.clock, page) : page;
  } finally {
    await state.close();
  }
}

async function runIdOf(name: string, accountIds: readonly number[], state: State): Promise<number | undefined> {
  const finder = new RunFinder(state);
  for (const accountId of accountIds) {
    try {
      return (await finder.find(accountId, name)).run.id;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error;
    }
  }
  return undefined;
}
