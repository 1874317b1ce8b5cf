import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { postOtlp } from '../../../../src/cli/bridge/bridge.js';
import { FakeClock } from '../../../fake/fake-clock.js';

const clock = new FakeClock();
let server: Server | undefined;
afterEach(() => {
  server?.close();
});

/** What posting to a bridge that answers so comes to. */
async function postTo(status: number, retryAfter?: string): Promise<number | null> {
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  const listening = createServer((_request, response) => response.writeHead(status, headers).end());
  server = listening;
  await new Promise((resolve) => listening.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = listening.address() as AddressInfo;
  return await postOtlp(`http://127.0.0.1:${port}`, { signal: 'logs', bytes: new Uint8Array() }, clock);
}

test.each([
  ['seconds', '5', 5_000],
  ['a date', new Date(clock.nowUnixMs() - (clock.nowUnixMs() % 1_000) + 30_000).toUTCString(), 30_000],
  ['a date that has passed', new Date(clock.nowUnixMs() - 30_000).toUTCString(), 100],
  ['no time at all', '0', 100],
  ['a year', '31536000', 60_000],
  ['neither', 'soon', 1_000],
  ['nothing', undefined, 1_000],
])('a bridge that takes no more is asked again after what it says: %s', async (_what, retryAfter, waitMs) => {
  expect(await postTo(503, retryAfter)).toBe(waitMs);
  server?.close();
  expect(await postTo(429, retryAfter)).toBe(waitMs);
});

test('nothing is waited for where it was taken', async () => {
  expect(await postTo(200)).toBeNull();
});

test('another attempt is not made where it would not help', async () => {
  await expect(postTo(404)).rejects.toThrow('answered 404; is a run-bridge listening there?');
});
