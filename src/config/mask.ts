/** What a secret's value is shown as. */
export const MASK = '****';

/** A URL without the password, user and query that it may carry; also of a text that was meant to be one. */
export function maskUrl(text: string): string {
  if (!URL.canParse(text) || new URL(text).host === '') return maskUserInfo(text);
  const url = new URL(text);
  if (url.username === '' && url.password === '' && url.search === '') return text;
  if (url.username !== '') url.username = MASK;
  if (url.password !== '') url.password = MASK;
  if (url.search !== '') url.search = `?${MASK}`;
  return url.href;
}

/** A value that is not what it should be, for an error message: in quotes, and without the secrets of a URL. */
export function quoted(value: string | number | boolean): string {
  return JSON.stringify(typeof value === 'string' ? maskUrl(value) : value);
}

/** What is wrong with a URL may be its password: whatever stands before the last `@`, behind a scheme or with a colon in it. */
function maskUserInfo(text: string): string {
  const [, scheme = '', userInfo, rest = ''] = /^(\s*[a-z][\w+.-]*:\/+)?(.*)(@[^@]*)$/is.exec(text) ?? [];
  if (userInfo === undefined || (scheme === '' && !userInfo.includes(':'))) return text;
  return `${scheme}${MASK}${rest.replace(/\?.*$/s, `?${MASK}`)}`;
}
