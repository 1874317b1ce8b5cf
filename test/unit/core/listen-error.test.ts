import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { HttpListener, ListenError } from '../../../src/core/http-listener.js';
import { silentLogger } from '../../../src/core/logger.js';

const OPTION = '--http HOST:PORT';

async function failureOf(host: string, port: number): Promise<unknown> {
  const listener = new HttpListener({ host, port, option: OPTION }, () => {}, silentLogger);
  return listener.start().catch((error: unknown) => error);
}

test('a port in use is named, with the way out', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const address = other.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const failure = await failureOf('127.0.0.1', port);
  other.close();
  expect(failure).toBeInstanceOf(ListenError);
  expect(failure).toMatchObject({
    code: 'in_use',
    message: `127.0.0.1:${port} is in use by another program; stop it or choose another port with ${OPTION}`,
  });
});

test("another machine's address, a name that means nothing and a port beyond 65535 are bad addresses", async () => {
  expect(await failureOf('203.0.113.7', 0)).toMatchObject({ name: 'ListenError', code: 'bad_address' });
  expect(await failureOf('no such host', 0)).toMatchObject({ name: 'ListenError', code: 'bad_address' });
  expect(await failureOf('127.0.0.1', 70_000)).toMatchObject({ name: 'ListenError', code: 'bad_address' });
});

test('every message is one line that says which option to use', () => {
  for (const code of ['EADDRINUSE', 'EACCES', 'EADDRNOTAVAIL', 'ENOTFOUND', 'ERR_SOCKET_BAD_PORT', 'EMFILE']) {
    const cause = Object.assign(new Error('system error'), { code });
    const error = ListenError.from(cause, '[::1]:80', OPTION);
    expect(error.message).toMatch(/^\[::1\]:80.*--http HOST:PORT$/);
    expect(error.cause).toBe(cause);
  }
});
