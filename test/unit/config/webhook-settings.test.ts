import { describe, expect, it } from 'vitest';
import { readWebhookKey } from '../../../src/config/resolve-configuration.js';
import {
  notifyOnArchiveSetting,
  publicUrlSetting,
  smtpFromSetting,
  smtpUrlSetting,
  webhookAllowSetting,
  webhookProxySetting,
  webhookRetriesSetting,
} from '../../../src/config/webhook-settings.js';
import { parseAllowed } from '../../../src/webhook/http.js';

const context = { baseDir: '/', homeDir: '/' };

describe('settings of webhooks', () => {
  it.each([
    ['off', []],
    ['loopback', ['loopback']],
    ['10.1.0.0/16, ::1,PRIVATE', ['10.1.0.0/16', '::1', 'private']],
    ['localhost', undefined],
    ['10.0.0.0/33', undefined],
    ['10.0.0.0/', undefined],
    ['', undefined],
  ])('webhook-allow reads %j as %j, all of which the rules know', (text, expected) => {
    const value = webhookAllowSetting.parse(text, context);
    expect(value).toEqual(expected);
    for (const entry of value ?? []) expect(parseAllowed(entry), entry).toBeDefined();
    if (value !== undefined)
      expect(webhookAllowSetting.parse(webhookAllowSetting.format(value), context)).toEqual(value);
  });

  it.each([
    ['off', 'off', 'off'],
    ['http://proxy:3128', 'http://proxy:3128/', 'http://proxy:3128/'],
    ['https://me:secret@proxy', 'https://me:secret@proxy/', 'https://me:****@proxy/'],
    ['proxy:3128', undefined, undefined],
    ['socks5://proxy:1080', undefined, undefined],
    ['http://proxy/path', undefined, undefined],
  ])('webhook-proxy reads %j as %j and shows %j', (text, expected, shown) => {
    const value = webhookProxySetting.parse(text, context);
    expect(value).toBe(expected);
    expect(value === undefined ? undefined : webhookProxySetting.format(value)).toBe(shown);
  });

  it.each([
    ['10s,1m', [10_000, 60_000]],
    ['1s', [1_000]],
    ['10s,,1m', undefined],
    ['soon', undefined],
    [Array(21).fill('1s').join(','), undefined],
  ])('webhook-retries reads %j as %j', (text, expected) => {
    expect(webhookRetriesSetting.parse(text, context)).toEqual(expected);
  });

  it.each([
    ['off', 'off'],
    [' mailto:a@example.com,b@example.com', 'mailto:a@example.com,b@example.com'],
    ['wsu_2ZkTlQyNL1UZjJVuJ7YyVqmSDnF', 'wsu_2ZkTlQyNL1UZjJVuJ7YyVqmSDnF'],
    ['a@example.com', undefined],
    ['mailto:', undefined],
  ])('notify-on-archive reads %j as %j', (text, expected) => {
    expect(notifyOnArchiveSetting.parse(text, context)).toBe(expected);
  });

  it('public-url has no slash at its end', () => {
    expect(publicUrlSetting.parse('https://runs.example.com/x/', context)).toBe('https://runs.example.com/x');
    expect(publicUrlSetting.parse('runs.example.com', context)).toBeUndefined();
  });

  it('smtp-url is shown without its password', () => {
    const value = smtpUrlSetting.parse('smtp://u:hidden@mail.example.com:587', context) ?? '';
    expect(smtpUrlSetting.format(value)).toBe('smtp://u:****@mail.example.com:587');
    expect(smtpUrlSetting.parse('http://mail.example.com', context)).toBeUndefined();
    expect(smtpFromSetting.parse('a b@example.com', context)).toBeUndefined();
  });
});

describe('the webhook key', () => {
  it.each(['base64', 'hex'] as const)('is 32 bytes in %s, and is never shown', (encoding) => {
    const key = Buffer.alloc(32, 7);
    const read = readWebhookKey({ RUN_BRIDGE_WEBHOOK_KEY: key.toString(encoding) });
    expect(Buffer.from(read.key ?? [])).toEqual(key);
    expect(read.rows).toEqual([{ name: 'webhook-key', value: '****', origin: 'RUN_BRIDGE_WEBHOOK_KEY' }]);
  });

  it('of another length is a problem that does not show it', () => {
    const { problems } = readWebhookKey({ RUN_BRIDGE_WEBHOOK_KEY: 'hidden' });
    expect(problems).toEqual([expect.stringContaining('openssl rand -base64 32')]);
    expect(problems.join()).not.toContain('hidden');
  });
});
