/** What stands where a secret was. */
const MASK = '****';
/** Shorter values are no secrets worth the name, and would be found in half of the words. */
const MIN_LENGTH = 6;
/** Names of environment variables that hold secrets, as the usual ones do. */
const SECRET_NAME = /pass|secret|token|key|credential|private|auth/i;
const URL_PASSWORD = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@]*:)[^\s/@]+@/gi;

/**
 * Removes secrets from a command's output: values of environment variables with names of secrets, and
 * passwords in URLs.
 * @param environment of the command
 */
export function maskSecrets(text: string, environment: Readonly<Record<string, string | undefined>>): string {
  let masked = text;
  for (const secret of secretsOf(environment)) masked = masked.replaceAll(secret, MASK);
  return masked.replaceAll(URL_PASSWORD, `$1${MASK}@`);
}

/** Longest first, so that none is cut up by another; of a value of several lines each line. */
function secretsOf(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const values = Object.entries(environment).flatMap(([name, value]) =>
    SECRET_NAME.test(name) ? [value ?? '', ...(value ?? '').split(/\r?\n/)] : [],
  );
  const isSecret = (value: string) => value.trim().length >= MIN_LENGTH && !PATH.test(value);
  return [...new Set(values.filter(isSecret))].sort((a, b) => b.length - a.length);
}

/** The path of a key is not a secret (SSH_AUTH_SOCK, GOOGLE_APPLICATION_CREDENTIALS). */
const PATH = /^[/~.][\w./-]*$/;
