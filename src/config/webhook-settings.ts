import { isIP } from 'node:net';
import { formatDuration, parseDurationMs } from './duration.js';
import { MASK } from './mask.js';
import { isOff, type Setting } from './setting.js';

/** The setting that lists addresses that webhooks may go to beside public ones. */
export const webhookAllowSetting: Setting<readonly string[]> = {
  placeholder: 'RANGES|off',
  summary:
    'addresses beside public ones that webhooks may be sent to: addresses, ranges such as 10.1.0.0/16, loopback, private, with commas between them; off for none',
  expected: 'off, or addresses, ranges such as 10.1.0.0/16, loopback or private, with commas between them',
  defaultText: 'off',
  parse(text) {
    if (isOff(text)) return [];
    const entries = text.split(',').map((entry) => entry.trim().toLowerCase());
    return entries.every(isAllowable) ? entries : undefined;
  },
  format: (value) => (value.length === 0 ? 'off' : value.join(',')),
};

/** Without the library that reads ranges, for which no start should wait. */
function isAllowable(entry: string): boolean {
  if (entry === 'loopback' || entry === 'private') return true;
  const [, address = '', bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(bits ?? 0) <= (family === 4 ? 32 : 128);
}

/** More attempts than these are of no use. */
const MAX_RETRIES = 20;
const MAX_DELAY_MS = 7 * 86_400_000;

/** The setting that says how long webhooks wait between attempts, in milliseconds each. */
export const webhookRetriesSetting: Setting<readonly number[]> = {
  placeholder: 'TIMES',
  summary: 'waits between the attempts to deliver a webhook; each is up to a tenth longer',
  expected: 'up to 20 times such as 10s,1m,10m,1h with commas between them',
  defaultText: '10s,1m,10m,1h',
  parse(text) {
    const delays = text.split(',').map((one) => parseDurationMs(one.trim(), MAX_DELAY_MS));
    const known = delays.flatMap((one) => one ?? []);
    return known.length === delays.length && known.length <= MAX_RETRIES ? known : undefined;
  },
  format: (value) => value.map(formatDuration).join(','),
};

/** The setting that says through which proxy webhooks are sent. */
export const webhookProxySetting: Setting<string> = {
  placeholder: 'URL|off',
  summary:
    'proxy that webhooks are sent through, such as http://user:password@proxy.example.com:3128; it must allow CONNECT to the addresses of endpoints, which are resolved and checked before; mail does not go through it; off for none',
  expected: 'a URL such as http://proxy.example.com:3128, or off',
  defaultText: 'off',
  isSecret: true,
  parse(text) {
    if (isOff(text)) return 'off';
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined;
    return url.pathname === '/' && url.search + url.hash === '' ? url.href : undefined;
  },
  format: withoutPassword,
};

/** The setting that says who is notified of webhooks that are failing, or were archived, and name nobody themselves. */
export const notifyOnArchiveSetting: Setting<string> = {
  placeholder: 'mailto:ADDRESS|ID|off',
  summary:
    'who is notified of webhooks of the first account that are failing or were archived, and have no notify_on_archive of their own: mailto: and addresses with commas between them, or the id of another webhook; off for nobody',
  expected: 'mailto: and addresses such as mailto:ops@example.com, the id of a webhook, wsu_…, or off',
  defaultText: 'off',
  parse(text) {
    if (isOff(text)) return 'off';
    const trimmed = text.trim();
    return /^(?:wsu_\w+|mailto:[^\s@,;]+@[^\s@,;]+(?:,[^\s@,;]+@[^\s@,;]+){0,49})$/.test(trimmed) ? trimmed : undefined;
  },
  format: (value) => value,
};

/** The setting that says where people reach the web port. */
export const publicUrlSetting: Setting<string> = {
  placeholder: 'URL|off',
  summary:
    'where others reach the web port, for links in messages, such as https://runs.example.com; off for its own address',
  expected: 'a URL such as https://runs.example.com, or off',
  defaultText: 'off',
  parse(text) {
    if (isOff(text)) return 'off';
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol) || url.username + url.password !== '') return undefined;
    return url.href.replace(/\/+$/, '');
  },
  format: (value) => value,
};

/** The setting that says which server sends mail. */
export const smtpUrlSetting: Setting<string> = {
  placeholder: 'URL|off',
  summary:
    'server that mail of webhooks is sent by, such as smtp://user:password@mail.example.com:587 or smtps://…; off for none',
  expected: 'a URL such as smtp://user:password@mail.example.com:587, or off',
  defaultText: 'off',
  isSecret: true,
  parse(text) {
    if (isOff(text)) return 'off';
    const trimmed = text.trim();
    return /^smtps?:\/\/[^\s]+$/i.test(trimmed) && URL.canParse(trimmed) ? trimmed : undefined;
  },
  format: withoutPassword,
};

/** The setting that says whom mail is from. */
export const smtpFromSetting: Setting<string> = {
  placeholder: 'ADDRESS',
  summary: 'whom mail of webhooks is from',
  expected: 'an address such as run-bridge@example.com',
  defaultText: 'run-bridge@localhost',
  parse: (text) => (/^[^\s@<>,;]+@[^\s@<>,;]+$/.test(text.trim()) ? text.trim() : undefined),
  format: (value) => value,
};

/** A URL, or `off`, as it may be shown. */
function withoutPassword(text: string): string {
  if (text === 'off') return text;
  const url = new URL(text);
  if (url.password !== '') url.password = MASK;
  return url.href;
}
