import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import express, { type NextFunction, type Request, type Response } from 'express';
import { afterEach, expect, it } from 'vitest';
import { ApiError } from '../../../src/api/api-error.js';
import { sendArtifact } from '../../../src/artifact/downloads.js';
import { type Artifact, parseArtifactPath } from '../../../src/storage/artifacts.js';

let server: Server | undefined;
afterEach(() => new Promise<void>((resolve) => server?.close(() => resolve())));

function artifactOf(text: string): Artifact {
  const path = parseArtifactPath('manifest.json');
  if (path === undefined) throw new Error('no path');
  return { path, sizeBytes: text.length, modifiedUnixMs: 1_000, etag: `"${text}"` };
}

/** A server with an artifact that another one takes the place of between looking at it and opening it. */
async function replacing(): Promise<string> {
  const app = express();
  app.get('/', (request, response) =>
    sendArtifact(request, response, {
      artifact: artifactOf('old'),
      open: async () => ({ artifact: artifactOf('newer'), content: Readable.from(['newer']) }),
    }),
  );
  app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
    const isKnown = error instanceof ApiError;
    response.status(isKnown ? error.status : 500).end(String(error));
  });
  const listening = createServer(app);
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(listening.address() as AddressInfo).port}/`;
}

it('answers with the whole of what has taken the place of an artifact meanwhile', async () => {
  const answer = await fetch(await replacing());
  expect([answer.status, answer.headers.get('etag'), answer.headers.get('content-length')]).toEqual([
    200,
    '"newer"',
    '5',
  ]);
  expect(await answer.text()).toBe('newer');
});

it('answers with no range of it: what was asked for is a range of another one', async () => {
  const answer = await fetch(await replacing(), { headers: { range: 'bytes=0-1' } });
  expect(answer.status).toBe(503);
  expect(await answer.text()).toContain('is being replaced; ask again');
});
