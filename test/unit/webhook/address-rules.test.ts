import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { AddressRules, parseAllowed, type ResolveAll, WebhookHttp } from '../../../src/webhook/http.js';

/** Spellings of forbidden addresses in a URL, and a word of the rule that refuses each. */
const FORBIDDEN: readonly (readonly [string, string])[] = [
  ['127.0.0.1', 'loopback'],
  ['127.1', 'loopback'],
  ['127.255.255.254', 'loopback'],
  ['2130706433', 'loopback'],
  ['0x7f000001', 'loopback'],
  ['0x7f.0.0.1', 'loopback'],
  ['0177.0.0.1', 'loopback'],
  ['017700000001', 'loopback'],
  ['%31%32%37.0.0.1', 'loopback'],
  ['127。0。0。1', 'loopback'],
  ['１２７.0.0.1', 'loopback'],
  ['127.0.0.1.', 'loopback'],
  ['0.0.0.0', 'unspecified'],
  ['0', 'unspecified'],
  ['0.1.2.3', 'unspecified'],
  ['10.0.0.1', 'private'],
  ['167772161', 'private'],
  ['172.16.0.1', 'private'],
  ['172.31.255.255', 'private'],
  ['192.168.1.1', 'private'],
  ['0xc0.0xa8.1.1', 'private'],
  ['169.254.169.254', 'metadata'],
  ['2852039166', 'metadata'],
  ['0xa9fea9fe', 'metadata'],
  ['100.100.100.200', 'carriers'],
  ['168.63.129.16', 'metadata'],
  ['192.0.0.192', 'reserved'],
  ['198.18.0.1', 'reserved'],
  ['224.0.0.1', 'multicast'],
  ['240.0.0.1', 'reserved'],
  ['255.255.255.255', 'broadcast'],
  ['[::1]', 'loopback'],
  ['[::]', 'unspecified'],
  ['[0:0:0:0:0:0:0:1]', 'loopback'],
  ['[::ffff:127.0.0.1]', 'loopback'],
  ['[::ffff:7f00:1]', 'loopback'],
  ['[::ffff:a9fe:a9fe]', 'metadata'],
  ['[::127.0.0.1]', 'loopback'],
  ['[64:ff9b::7f00:1]', 'loopback'],
  ['[64:ff9b::10.0.0.1]', 'private'],
  ['[64:ff9b:1::7f00:1]', 'reserved'],
  ['[2002:7f00:1::]', 'loopback'],
  ['[2001:0:4136:e378:8000:63bf:3fff:fdd2]', 'reserved'],
  ['[fe80::1]', 'metadata'],
  ['[fc00::1]', 'private'],
  ['[fd00:ec2::254]', 'private'],
  ['[fec0::1]', 'reserved'],
  ['[ff02::1]', 'multicast'],
  ['[2001:db8::1]', 'reserved'],
  ['[::ffff:0:127.0.0.1]', 'loopback'],
];

let server: Server;
let port: number;
let requestCount: number;
beforeEach(async () => {
  requestCount = 0;
  server = createServer((request, response) => {
    requestCount += 1;
    const { address } = { address: '127.0.0.1' };
    if (request.url === '/redirect') response.writeHead(302, { Location: `http://${address}:${port}/inner` }).end();
    else response.end('inner');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

/** What a request comes to. @param addresses what names resolve to, one list a look */
async function ask(host: string, allow: readonly string[], addresses: readonly (readonly string[])[] = [], path = '/') {
  let looks = 0;
  const resolve: ResolveAll = async () => {
    const found = addresses[Math.min(looks, addresses.length - 1)] ?? [];
    looks += 1;
    return found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  };
  const rules = new AddressRules(allow.flatMap((one) => parseAllowed(one) ?? []));
  const http = new WebhookHttp({ rules, timeoutMs: 2_000, resolve }, systemClock);
  const url = new URL(`http://${host}:${port}${path}`);
  const outcome = await http.post(url, {}, Buffer.from('{}'), AbortSignal.timeout(10_000));
  http.close();
  return { ...outcome, looks };
}

describe('an endpoint', () => {
  it.each(FORBIDDEN)('at %s is refused, and the rule is named: %s', async (host, word) => {
    const { status, error } = await ask(host, []);
    expect(status).toBeNull();
    expect(error).toContain('is refused: ');
    expect(error).toContain(word);
    expect(error).toContain('webhook-allow');
    expect(requestCount).toBe(0);
  });

  it.each(['127.0.0.1', '::1', '10.1.2.3', '169.254.169.254', '::ffff:127.0.0.1', 'fd00::1'])(
    'whose name resolves to %s is refused',
    async (address) => {
      const { status, error } = await ask('hooks.example.com', [], [[address]]);
      expect([status, requestCount]).toEqual([null, 0]);
      expect(error).toContain('hooks.example.com is refused');
    },
  );

  it('whose name resolves to another address a moment later is connected to what was looked at', async () => {
    const { status, error, looks } = await ask('rebind.example.com', ['127.0.0.1'], [['127.0.0.1'], ['10.0.0.1']]);
    expect([status, error, looks]).toEqual([200, null, 1]);
    const refused = await ask('rebind.example.com', [], [['127.0.0.1'], ['127.0.0.1']]);
    expect([refused.status, requestCount]).toEqual([null, 1]);
  });

  it('with forbidden addresses among others is connected to the others only', async () => {
    const { status } = await ask('both.example.com', ['127.0.0.1'], [['10.0.0.1', '127.0.0.1', '::1']]);
    expect(status).toBe(200);
  });

  it('that redirects to a forbidden address is not followed', async () => {
    const { status } = await ask('127.0.0.1', ['127.0.0.1'], [], '/redirect');
    expect([status, requestCount]).toEqual([302, 1]);
  });

  it('is reached where the list has it', async () => {
    for (const allow of ['127.0.0.1', '127.0.0.0/8', 'loopback'])
      expect((await ask('127.0.0.1', [allow])).status).toBe(200);
    expect((await ask('127.0.0.1', ['private', '10.0.0.0/8', '::1'])).status).toBeNull();
  });
});

describe('the rules', () => {
  it.each(['8.8.8.8', '93.184.216.34', '2606:2800:220:1::1', '::ffff:8.8.8.8', '64:ff9b::808:808', '2002:808:808::1'])(
    'let %s pass',
    (address) => {
      expect(new AddressRules([]).ruleAgainst(address)).toBeUndefined();
    },
  );

  it('refuse what is no address', () => {
    expect(new AddressRules([]).ruleAgainst('')).toBe('which is no IP address');
  });

  it.each(['', 'localhost', '10.0.0.0/33', '1.2.3', 'public'])('have no entry %j in their list', (text) => {
    expect(parseAllowed(text)).toBeUndefined();
  });
});
