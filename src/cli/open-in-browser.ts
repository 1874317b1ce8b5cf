import { makeSignInLink } from '../api/sign-in-links.js';
import { openState } from '../app/open-state.js';
import type { Configuration } from '../config/configuration.js';
import { nonEmpty } from '../config/environment.js';
import { reasonOf } from '../core/errors.js';
import { readHolder } from '../storage/data-folder-in-use-error.js';
import { askBridge } from './bridge/ask-bridge.js';
import { reachableUrl } from './bridge/post-otlp.js';
import { CliError } from './cli-error.js';
import type { Invocation } from './command-line.js';
import { EXIT, type ExitCode } from './exit-code.js';
import { refuseElsewhere } from './refuse-elsewhere.js';
import { resolveForCommand } from './resolve-for-command.js';

/**
 * What `run-bridge open` does. The address is printed in any case: whether a browser comes up is not known.
 * @throws CliError where no bridge serves the data folder; ConfigurationError, StoreError
 */
export async function openInBrowser(invocation: Invocation): Promise<ExitCode> {
  const { context, operands, switches } = invocation;
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  refuseElsewhere(configuration);
  const page = operands[0] === undefined ? '/' : `/runs/${runNumber(operands[0])}`;
  const bridge = await bridgeOf(configuration);
  const url = bridge.hasSignInLinks
    ? `${bridge.webUrl}${await linkTo(page, configuration, invocation)}`
    : `${bridge.webUrl}${page}`;
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
function runNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, `${JSON.stringify(text)} is not the number of a run; run-bridge open shows all runs`);
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

async function linkTo(page: string, configuration: Configuration, { context }: Invocation): Promise<string> {
  const state = await openState(configuration, context.clock);
  try {
    return await makeSignInLink(state.tokens, context.clock, page);
  } finally {
    await state.close();
  }
}
