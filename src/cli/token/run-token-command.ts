import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { removeFirstToken } from '../../api/first-token.js';
import { STATE_FILE } from '../../app/limits.js';
import { openState } from '../../app/open-state.js';
import { createFolder } from '../../component/create-folder.js';
import { errorCode } from '../../component/error-code.js';
import { nearestName } from '../../config/suggestion.js';
import type { State } from '../../store/state.js';
import { CliError } from '../cli-error.js';
import type { Invocation } from '../command-line.js';
import { EXIT, type ExitCode } from '../exit-code.js';
import { refuseElsewhere } from '../refuse-elsewhere.js';
import { resolveForCommand } from '../resolve-for-command.js';
import { createToken } from './create-token.js';
import { tokenLines } from './token-lines.js';
import { readTokenOrder } from './token-order.js';

/** Flags that every action takes. */
const SETTING_FLAGS: ReadonlySet<string> = new Set(['data-dir', 'database-url', 'config']);
const ACTIONS = ['create', 'list', 'revoke'] as const;

/** What `run-bridge token` does. @throws CliError, ConfigurationError, StoreError */
export async function runTokenCommand(invocation: Invocation): Promise<ExitCode> {
  const { context, operands } = invocation;
  const action = readAction(operands[0] ?? '');
  const given = Object.keys(invocation.flags).filter((name) => !SETTING_FLAGS.has(name));
  if (action !== 'create' && given.length > 0) {
    throw new CliError(EXIT.usage, `--${given[0]} belongs to run-bridge token create, not to ${action}`);
  }
  if (action !== 'revoke' && operands[1] !== undefined) {
    throw new CliError(EXIT.usage, `run-bridge token ${action} takes no ${JSON.stringify(operands[1])}`);
  }
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) context.stderr.write(`run-bridge: ${warning}\n`);
  refuseElsewhere(configuration);
  switch (action) {
    case 'create': {
      const order = readTokenOrder(invocation.flags, context.clock.nowUnixMs());
      if (configuration['database-url'] === 'off') makeFolder(configuration['data-dir']);
      return await withState((state) => createToken(state, order, context));
    }
    case 'list':
      return await withKnownState(async ({ tokens }) => {
        const lines = tokenLines(await tokens.list(), context.clock.nowUnixMs());
        for (const line of lines) context.stdout.write(`${line}\n`);
        return EXIT.ok;
      });
    case 'revoke': {
      const id = readId(operands[1]);
      return await withKnownState((state) => revoke(state, id, { invocation, dataFolder: configuration['data-dir'] }));
    }
  }

  /** Nothing is made where nothing was: a mistyped folder stays away. */
  function withKnownState(body: (state: State) => Promise<ExitCode>): Promise<ExitCode> {
    const { 'data-dir': folder, 'database-url': url } = configuration;
    if (url !== 'off' || existsSync(join(folder, STATE_FILE))) return withState(body);
    throw new CliError(EXIT.failed, `${folder} has no tokens: nothing has been kept there; is --data-dir right?`);
  }

  async function withState(body: (state: State) => Promise<ExitCode>): Promise<ExitCode> {
    const state = await openState(configuration, context.clock);
    try {
      return await body(state);
    } finally {
      await state.close();
    }
  }
}

function makeFolder(folder: string): void {
  try {
    createFolder(folder);
  } catch (cause) {
    const code = errorCode(cause) ?? String(cause);
    const message = `${folder}: the data folder cannot be created (${code}); pass a folder that this user can write with --data-dir`;
    throw new CliError(EXIT.usage, message, { cause });
  }
}

async function revoke(
  { tokens }: State,
  id: number,
  { invocation, dataFolder }: { readonly invocation: Invocation; readonly dataFolder: string },
): Promise<ExitCode> {
  const { context } = invocation;
  const result = await tokens.revoke(id, context.clock.nowUnixMs());
  if (result.kind === 'unknown')
    throw new CliError(EXIT.failed, `there is no token ${id}; run-bridge token list shows all`);
  const { name } = result.token;
  const what = result.kind === 'revoked' ? 'is revoked: it is refused within five seconds' : 'was revoked already';
  context.stderr.write(`token ${id} (${name}) ${what}\n`);
  const removed = removeFirstToken(dataFolder, result.token.hash);
  if (removed !== null) context.stderr.write(`removed ${removed}, which held it\n`);
  return EXIT.ok;
}

function readAction(text: string): (typeof ACTIONS)[number] {
  const action = ACTIONS.find((one) => one === text);
  if (action !== undefined) return action;
  const meant = nearestName(text, ACTIONS);
  const hint = meant === undefined ? `choose ${ACTIONS.join(', ')}` : `did you mean ${meant}?`;
  throw new CliError(EXIT.usage, `token ${JSON.stringify(text)} is nothing that can be done; ${hint}`);
}

function readId(text: string | undefined): number {
  if (text === undefined) throw new CliError(EXIT.usage, 'which token? Give its id, which run-bridge token list shows');
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, 'a token is revoked by its id, a number that run-bridge token list shows');
}
