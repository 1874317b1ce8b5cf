/** The text that replaces a secret. */
const MASK = '****';
/** The shortest value that is masked: a shorter one would be found in many words. */
const MIN_LENGTH = 6;
/** A pattern for names of environment variables with secrets. */
const SECRET_NAME = /pass|secret|token|key|credential|private|auth/i;
const URL_PASSWORD = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@]*:)[^\s/@]+@/gi;

/**
 * Removes secrets from a command's output: values of environment variables whose names look like secrets, and passwords in URLs.
 * @param environment of the command
 */
export function maskSecrets(text: string, environment: Readonly<Record<string, string | undefined>>): string {
  let masked = text;
  for (const secret of secretsOf(environment)) masked = masked.replaceAll(secret, MASK);
  return masked.replaceAll(URL_PASSWORD, `$1${MASK}@`);
}

/** Returns the secrets in an environment, and each line of those with several lines; the longest first, so that none is cut by a shorter one. */
function secretsOf(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const values = Object.entries(environment).flatMap(([name, value]) =>
    SECRET_NAME.test(name) ? [value ?? '', ...(value ?? '').split(/\r?\n/)] : [],
  );
  const isSecret = (value: string) => value.trim().length >= MIN_LENGTH && !PATH.test(value);
  return [...new Set(values.filter(isSecret))].sort((a, b) => b.length - a.length);
}

/** A path, which is no secret even if it is the path of a key (SSH_AUTH_SOCK, GOOGLE_APPLICATION_CREDENTIALS). */
const PATH = /^[/~.][\w./-]*$/;
