import { MASK } from './mask.js';
import type { Setting } from './setting.js';

const SCHEME = /^postgres(ql)?:\/\//i;
/** Stands for the host where there is none because a folder of sockets is named instead: such a URL has no other parser. */
const NO_HOST = 'socket';

/** The setting that says which PostgreSQL keeps the state, in place of the data folder's SQLite file. */
export const databaseUrlSetting: Setting<string> = {
  placeholder: 'URL|off',
  summary:
    'PostgreSQL that keeps the state, such as postgresql://user:password@host:5432/run_bridge; also read from `DATABASE_URL`; off keeps it in the data folder',
  expected: 'a URL such as postgresql://user:password@host:5432/run_bridge, or off',
  defaultText: 'off',
  isSecret: true,
  sharedVariable: { name: 'DATABASE_URL', isMeant: (text) => SCHEME.test(text.trim()) },
  parse: parseDatabaseUrl,
  format: maskDatabaseUrl,
};

function parseDatabaseUrl(text: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed.toLowerCase() === 'off') return 'off';
  return SCHEME.test(trimmed) && URL.canParse(withHost(trimmed)) ? trimmed : undefined;
}

/** The URL as it may be shown: without passwords. */
function maskDatabaseUrl(text: string): string {
  if (text === 'off') return text;
  const url = new URL(withHost(text));
  if (url.password !== '') url.password = MASK;
  for (const name of url.searchParams.keys()) {
    if (/password|key|token/i.test(name)) url.searchParams.set(name, MASK);
  }
  return url.href.replace(`@${NO_HOST}/`, '@/');
}

function withHost(text: string): string {
  return text.replace('@/', `@${NO_HOST}/`);
}
