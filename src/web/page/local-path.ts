const HERE = 'http://here.invalid';

/** A path of this server that a request names, with its query; `/` for everything else, above all for other servers' URLs. */
export function localPath(value: unknown): string {
  if (typeof value !== 'string' || !value.startsWith('/')) return '/';
  if (!URL.canParse(value, HERE)) return '/';
  const { origin, pathname, search } = new URL(value, HERE);
  // `//elsewhere` and `/\elsewhere` are URLs of other servers; so is a path that begins so once its dots are gone.
  return origin !== HERE || pathname.startsWith('//') ? '/' : `${pathname}${search}`;
}
