import { type Environment, nonEmpty } from '../../config/environment.js';
import { parseKeyValues } from '../../config/otlp-environment.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-code.js';

/** The variable that holds the token for a bridge elsewhere. */
const VARIABLE = 'RUN_BRIDGE_TOKEN';
const HEADERS_VARIABLE = 'OTEL_EXPORTER_OTLP_HEADERS';

/**
 * Headers of requests to a bridge: RUN_BRIDGE_TOKEN, else the `Authorization` of OpenTelemetry's variables for
 * their endpoint, if that is on the bridge's host: another backend's key is never sent to it.
 * @throws CliError for an invalid token.
 */
export function bridgeHeaders(environment: Environment, bridgeUrl: string): Readonly<Record<string, string>> {
  const token = nonEmpty(environment[VARIABLE])?.trim();
  if (token !== undefined) {
    if (/^[\x21-\x7e]+$/.test(token)) return { authorization: `Bearer ${token}` };
    throw new CliError(EXIT.usage, `${VARIABLE}: contains a space or a line break; set it to the token alone`);
  }
  const endpoint = nonEmpty(environment.OTEL_EXPORTER_OTLP_ENDPOINT)?.trim();
  if (endpoint !== undefined && hostOf(endpoint) !== hostOf(bridgeUrl)) return {};
  const { pairs } = parseKeyValues(HEADERS_VARIABLE, environment[HEADERS_VARIABLE] ?? '');
  const authorization = Object.entries(pairs).find(([name]) => name.toLowerCase() === 'authorization')?.[1];
  return authorization === undefined || !/^[\x20-\x7e]+$/.test(authorization) ? {} : { authorization };
}

function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
