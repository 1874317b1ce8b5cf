import { createServer } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { silentLogger } from '../../../src/core/logger.js';
import { RequestReader } from '../../../src/exec/request-reader.js';
import { FakeClock } from '../../fake/fake-clock.js';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

it('answers the first request once its receiver is loaded', async () => {
  const signals: string[] = [];
  const reader = new RequestReader(
    { clock: new FakeClock(), logger: silentLogger, engineNames: [] },
    async (_decoded, signal) => {
      signals.push(signal);
    },
  );
  const server = createServer((request, response) => void reader.answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => server.close());
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'x' } }] }] }] });
  expect((await fetch(`http://127.0.0.1:${port}/v1/logs`, { method: 'POST', headers, body })).status).toBe(200);
  expect(signals).toEqual(['logs']);
});
