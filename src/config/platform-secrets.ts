import type { ConfigurationRow, PlatformSecrets } from './configuration.js';
import { type Environment, nonEmpty } from './environment.js';
import { MASK } from './mask.js';

const TOKEN = 'RUN_BRIDGE_PLATFORM_TOKEN';
const HOOK_SECRET = 'RUN_BRIDGE_PLATFORM_HOOK_SECRET';

/** The variables that hold secrets of the hosted platform. */
export const PLATFORM_SECRET_NAMES = [TOKEN, HOOK_SECRET] as const;

/**
 * Reads the hosted platform's secrets. They come from the environment alone: a command line is seen by every user of the
 * machine, and a file is copied.
 */
export function readPlatformSecrets(environment: Environment): {
  readonly secrets: PlatformSecrets;
  readonly problems: readonly string[];
  readonly rows: readonly ConfigurationRow[];
} {
  const token = nonEmpty(environment[TOKEN])?.trim() ?? null;
  const hookSecret = nonEmpty(environment[HOOK_SECRET]) ?? null;
  const isToken = token === null || /^[\x21-\x7e]+$/.test(token);
  const rows = [
    { name: 'platform-token', value: MASK, origin: TOKEN },
    { name: 'platform-hook-secret', value: MASK, origin: HOOK_SECRET },
  ];
  return {
    secrets: { token, hookSecret },
    problems: isToken ? [] : [`${TOKEN}: contains a space or a line break; set it to the token alone`],
    rows: rows.filter(({ origin }) => nonEmpty(environment[origin]) !== undefined),
  };
}
