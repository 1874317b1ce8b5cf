import { MAX_SCOPE_NAME_LENGTH, type NamedScope, SCOPE_KINDS } from '../record/attributes.js';
import { RequestError } from './refusal.js';

type ScopeKind = (typeof SCOPE_KINDS)[number];

/** What is said to whoever has a path that names nothing of these. */
const HELP =
  'An endpoint may say job, environment and project in its path, each once, in any order and percent-encoded: http://HOST:4318/job/nightly/environment/prod, to which senders append /v1/traces and /v1/logs.';

/**
 * Reads what the path of an endpoint says of the records that are sent below it: `/job/nightly/environment/prod`.
 * @param path as it was sent, without `/v1/traces`; empty for an endpoint without one
 * @throws RequestError `unknown_path` for one that is built otherwise, `malformed` for a name that cannot be one
 */
export function parseScopePath(path: string): NamedScope {
  const [start, ...parts] = path.split('/');
  if (start !== '') throw new RequestError('unknown_path', `The path does not begin with a slash. ${HELP}`);
  const scope: Partial<Record<ScopeKind, string>> = {};
  for (let index = 0; index < parts.length; index += 2) {
    const kind = SCOPE_KINDS.find((one) => one === parts[index]);
    if (kind === undefined)
      throw new RequestError(
        'unknown_path',
        `Part ${index + 1} of the path is neither job, environment nor project. ${HELP}`,
      );
    if (scope[kind] !== undefined) throw new RequestError('malformed', `The path says ${kind} twice. ${HELP}`);
    scope[kind] = nameIn(kind, parts[index + 1] ?? '');
  }
  return scope;
}

/** Writes the path of which `parseScopePath` makes the same; empty where nothing is named. */
export function formatScopePath(scope: NamedScope): string {
  return SCOPE_KINDS.flatMap((kind) => {
    const name = scope[kind];
    return name === undefined ? [] : [`/${kind}/${encodeURIComponent(name)}`];
  }).join('');
}

/**
 * Divides the address of a bridge, as senders have it in OTEL_EXPORTER_OTLP_ENDPOINT, into the bridge's own and what its path
 * names. An address whose path names nothing, or not so that a bridge would take it, is left as it is.
 */
export function splitScope(url: string): { readonly baseUrl: string; readonly scope: NamedScope } {
  const whole = { baseUrl: url, scope: {} };
  const [, base = '', path = ''] = /^([^?#]*?)((?:\/(?:job|environment|project)\/[^/?#]+)+)\/*$/.exec(url) ?? [];
  // What stands before it has to be an address: the host of `http://job/a` is named `job`.
  if (!/^[a-z]+:\/\/[^/]/i.test(base)) return whole;
  try {
    return { baseUrl: base, scope: parseScopePath(path) };
  } catch (error) {
    if (error instanceof RequestError) return whole;
    throw error;
  }
}

function nameIn(kind: ScopeKind, encoded: string): string {
  if (encoded === '')
    throw new RequestError('malformed', `The path says no name after ${kind}, or has a slash too many. ${HELP}`);
  const name = decoded(encoded)?.trim();
  if (name === undefined)
    throw new RequestError(
      'malformed',
      `The name of the ${kind} in the path is not percent-encoded UTF-8; write ü as %C3%BC, a blank as %20, a slash as %2F, a percent sign as %25. ${HELP}`,
    );
  if (name === '' || name.length > MAX_SCOPE_NAME_LENGTH || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(name))
    throw new RequestError(
      'malformed',
      `The name of the ${kind} in the path has to have 1 to ${MAX_SCOPE_NAME_LENGTH} characters on one line, without control characters. ${HELP}`,
    );
  return name;
}

function decoded(text: string): string | undefined {
  if (/[^\x21-\x7e]/.test(text)) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
