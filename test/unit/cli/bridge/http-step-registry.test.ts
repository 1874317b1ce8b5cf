import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HttpStepRegistry } from '../../../../src/cli/bridge/http-step-registry.js';
import { parseTraceId, type TraceId } from '../../../../src/record/telemetry-record.js';
import { stepRegistryContract, stepStart } from '../../../contract/step-registry.contract.js';
import { FakeClock } from '../../../fake/fake-clock.js';
import { RegistryServer } from '../../../fake/registry-server.js';
import { until } from '../../../tool/until.js';

const TRACE = parseTraceId('0af7651916cd43dd8448eb211c80319c') as TraceId;
const EXIT_0 = { kind: 'exited', exitCode: 0 } as const;

let server: RegistryServer;
beforeEach(async () => {
  server = await RegistryServer.open();
});
afterEach(() => server.close());

function bookAt(url: string, clock = new FakeClock()): HttpStepRegistry {
  return new HttpStepRegistry(url, { clock, signal: new AbortController().signal });
}

stepRegistryContract('a registry over HTTP', async (body) => {
  const registry = bookAt(`${server.url}/`);
  await body(registry, server.store);
  registry.close();
});

describe('a registry over HTTP', () => {
  it('is reported as run elsewhere, so that a restart of the bridge leaves its step open', async () => {
    await bookAt(server.url).register(stepStart('a', {}));
    expect((await server.store.findStep('a'))?.reporter).toBe('remote');
  });

  it('keeps a step alive while its command is under way, and not longer', async () => {
    const clock = new FakeClock();
    const registry = bookAt(server.url, clock);
    await registry.register(stepStart('a', {}));
    clock.advance(60_000);
    expect(clock.nextTimerMs).toBe(60_000);
    await registry.end('a', EXIT_0, 2_000);
    expect(clock.nextTimerMs).toBeUndefined();
  });

  it('tries again when the bridge cannot be reached, then says so in a line', async () => {
    const clock = new FakeClock();
    const { port } = server;
    await server.close();
    const failing = bookAt(`http://127.0.0.1:${port}`, clock).register(stepStart('a', {}));
    const failure = expect(failing).rejects.toMatchObject({
      name: 'StepRegistryError',
      code: 'unavailable',
      message: `the bridge at http://127.0.0.1:${port} cannot be reached; check that it runs and that --to is right`,
    });
    await advanceUntilSettled(clock, failing);
    await failure;
    const waiting = bookAt(`http://127.0.0.1:${port}`, clock);
    const begun = waiting.register(stepStart('b', {}));
    server = await RegistryServer.open('127.0.0.1', port);
    await advanceUntilSettled(clock, begun);
    expect(await begun).toMatchObject({ stepIndex: 1 });
  });

  it('begins a step again at a bridge that does not know it', async () => {
    const registry = bookAt(server.url);
    await registry.register(stepStart('a', { job: 'nightly' }));
    const { port } = server;
    await server.close();
    server = await RegistryServer.open('127.0.0.1', port);
    await registry.attach('a', TRACE);
    await registry.end('a', EXIT_0, 2_000);
    expect(await server.store.findStep('a')).toMatchObject({
      ending: EXIT_0,
      run: { job: 'nightly', state: 'finished' },
    });
  });

  it('says so where something else answers', async () => {
    const elsewhere = bookAt(`${server.url}/nothing`);
    await expect(elsewhere.register(stepStart('a', {}))).rejects.toMatchObject({
      code: 'refused',
      message: 'it answered 404; is a run-bridge listening there?',
    });
  });
});

async function advanceUntilSettled(clock: FakeClock, promise: Promise<unknown>): Promise<void> {
  let isSettled = false;
  const settled = () => {
    isSettled = true;
  };
  promise.then(settled, settled);
  await until('the registry to be done', () => {
    // Its other timer, once a minute, is not due.
    clock.advance(100);
    return isSettled;
  });
}
