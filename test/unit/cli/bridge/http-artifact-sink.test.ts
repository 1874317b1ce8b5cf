import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { HttpArtifactSink } from '../../../../src/cli/bridge/http-artifact-sink.js';
import { systemClock } from '../../../../src/core/clock.js';
import { parseArtifactPath } from '../../../../src/storage/artifacts.js';

const NEVER = new AbortController().signal;
let folder: string;
let server: Server;
/** What a connection does that has brought something. */
let onData: (socket: Socket) => void;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-sink-'));
  server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => onData(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  if (server.listening) await new Promise((resolve) => server.close(resolve));
});

async function put(sizeBytes: number, signal = NEVER): Promise<unknown> {
  const path = parseArtifactPath('run/a.sql');
  if (path === undefined) throw new Error('no path');
  const file = join(folder, 'a.sql');
  writeFileSync(file, Buffer.alloc(sizeBytes));
  const { port } = server.address() as AddressInfo;
  return new HttpArtifactSink(`http://127.0.0.1:${port}`, systemClock)
    .put({ runId: 1, stepIndex: 1, path }, file, signal)
    .catch((error: unknown) => error);
}

// Whatever is left unsettled, or is thrown where nobody catches it, fails the file.
it.each([
  ['resets in the middle of an artifact', (socket: Socket) => socket.resetAndDestroy()],
  ['closes without an answer', (socket: Socket) => socket.end()],
  ['answers what is no HTTP', (socket: Socket) => socket.end('SSH-2.0-x\r\n')],
  ['goes in the middle of its answer', (socket: Socket) => socket.end('HTTP/1.1 503 x\r\nContent-Length: 9\r\n\r\n{')],
])('says of a bridge that %s that it cannot be reached', async (_name, behave) => {
  onData = behave;
  for (const sizeBytes of [0, 10, 3_000_000])
    expect(await put(sizeBytes)).toMatchObject({ name: 'ArtifactError', code: 'unavailable' });
});

it('says of one that takes its time that it may be tried again', async () => {
  onData = (socket) => socket.end('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n');
  expect(await put(10)).toMatchObject({ code: 'unavailable' });
});

it('ends when it is told to, also where nothing is answered', async () => {
  const stop = new AbortController();
  const sockets: Socket[] = [];
  onData = (socket) => {
    sockets.push(socket);
    stop.abort(new Error('stopped'));
  };
  expect(await put(3_000_000, stop.signal)).toMatchObject({ message: 'stopped' });
  for (const socket of sockets) socket.destroy();
});
