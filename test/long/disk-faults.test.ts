import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { FaultyDisk } from '../tool/faulty-disk.js';
import { MountedFolder } from '../tool/mounted-folder.js';
import { type SentAnswer, SentRun } from '../tool/sent-run.js';
import { until } from '../tool/until.js';

const MIB = 2 ** 20;
/** `nobody`: what root may do says nothing about permissions. */
const NOBODY = process.getuid?.() === 0 ? 65_534 : undefined;

let bridge: BridgeProcess;
/** Sent and answered 200, all of it. */
let accepted: SentRun[];

beforeEach(() => {
  accepted = [];
});

afterEach(async () => {
  // Whatever happened, what was accepted is there once, and every line of it is whole.
  for (const run of accepted) {
    expect(run.compare(bridge.runFolder(run.traceId))).toEqual({ missingCount: 0, addedCount: 0 });
    await bridge.finished(run.traceId);
  }
  const faults = bridge.stderr.match(/internal error.*/g);
  await bridge.remove();
  expect(faults).toBeNull();
});

/** Sends a run and waits until its files are written. */
async function accept(run = new SentRun()): Promise<void> {
  expect(await run.send(bridge.otlpUrl)).toEqual(OK);
  accepted.push(run);
  await bridge.finished(run.traceId);
}

const OK = [expect.objectContaining({ status: 200 }), expect.objectContaining({ status: 200 })];

/** Sends new runs until one is not taken, and says what the answer was. */
async function untilRefused(): Promise<SentAnswer> {
  return await until('a refusal', async () => {
    const run = new SentRun();
    const refused = (await run.send(bridge.otlpUrl)).find(({ status }) => status !== 200);
    if (refused === undefined) accepted.push(run);
    return refused;
  });
}

async function untilAccepted(): Promise<void> {
  await until('a run that is taken', async () => {
    const run = new SentRun();
    if ((await run.send(bridge.otlpUrl)).some(({ status }) => status !== 200)) return false;
    accepted.push(run);
    return true;
  });
}

async function readiness(): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${bridge.webUrl}/readyz`);
  return { status: answer.status, text: await answer.text() };
}

async function untilReady(): Promise<void> {
  await until('readiness', async () => (await readiness()).status === 200);
}

/**
 * Messages of the log's warnings and errors, and of what says that they are over, but for those of what is tried again. Who numbers runs looks
 * into the folder as well, and a run that has just ended has its summary written: whether at such a moment is chance.
 */
function said(): string[] {
  const lines = bridge.stderr.split('\n').filter((line) => line.startsWith('{'));
  const entries = lines.map((line) => JSON.parse(line) as { level: string; msg: string });
  const notes = entries.filter(({ level, msg }) => level !== 'info' || / again/.test(msg)).map(({ msg }) => msg);
  return notes.filter((message) => !TRIED_AGAIN.includes(message));
}

const DISK_BEGAN = 'the data folder has no room for records: requests are answered 503 until it has';
const DISK_ENDED = 'the data folder has room again: requests are accepted';
const TRIED_AGAIN = [
  'a listener of run changes failed; it is notified again later',
  'failed to write run.json; retrying; check that the data folder is writable and has space',
];
const WRITE_BEGAN = 'failed to write telemetry to the data folder; senders are asked to retry';
const WRITE_ENDED = 'telemetry is written to the data folder again';

const mounted = MountedFolder.mount(48);
afterAll(() => mounted?.remove());

describe.skipIf(mounted === undefined)('a file system that may be mounted here', () => {
  const path = mounted?.path ?? '';
  const filler = join(path, 'filler');
  const fill = (leaveBytes: number) => {
    const { bavail, bsize } = statfsSync(path);
    try {
      writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - leaveBytes)));
    } catch (error) {
      // The program has written something meanwhile: what was left is taken all the same.
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  };
  const start = async (...args: string[]) => {
    bridge = await BridgeProcess.start({ dataFolder: join(path, 'data'), args });
  };
  beforeEach(() => mkdirSync(join(path, 'data')));
  afterEach(() => rmSync(filler, { force: true }));

  test('when it is nearly full, requests are refused before it is, and taken again when there is room', async () => {
    await start('--disk-reserve', '24MiB');
    await accept();
    fill(22 * MIB);
    const refused = await untilRefused();
    expect(refused).toMatchObject({ status: 503, retryAfter: '5' });
    expect(refused.message).toMatch(/^The disk of .* is nearly full .* 24 MiB are kept in reserve.*--disk-reserve/);
    expect(await readiness()).toMatchObject({ status: 503, text: expect.stringMatching(/^disk: The disk of/) });
    // What was accepted is finished from the reserve.
    for (const run of accepted) await bridge.finished(run.traceId);
    rmSync(filler);
    await untilAccepted();
    await untilReady();
    expect(said()).toEqual([DISK_BEGAN, DISK_ENDED]);
  });

  test('when it is full to the last byte, nothing half-written counts, and all is well when there is room', async () => {
    await start('--disk-reserve', 'off');
    await accept();
    fill(0);
    const refused = await untilRefused();
    expect(refused).toMatchObject({ status: 503, retryAfter: '5' });
    // The guard may look just while there is no byte left, and says so, too.
    expect(refused.message).toMatch(/^the data folder cannot be written: ENOSPC|^The disk of /);
    expect((await readiness()).status).toBe(503);
    rmSync(filler);
    await untilReady();
    await untilAccepted();
    const written = said().filter((line) => line !== DISK_BEGAN && line !== DISK_ENDED);
    expect(written.filter((line) => line !== WRITE_BEGAN && line !== WRITE_ENDED)).toEqual([]);
  });

  test('when it becomes read-only, requests are refused until it can be written', async () => {
    await start();
    await accept();
    mounted?.makeReadOnly();
    const refused = await untilRefused();
    expect(refused.status).toBe(503);
    expect(refused.message).toMatch(/^the data folder cannot be written: E/);
    expect((await readiness()).status).toBe(503);
    mounted?.makeWritable();
    await untilReady();
    await untilAccepted();
    expect(said()).toEqual([WRITE_BEGAN, WRITE_ENDED]);
  });
});

describe('a data folder', () => {
  let dataFolder: string;
  const runs = () => join(dataFolder, 'runs');
  const start = async (...args: string[]) => {
    dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-fault-'));
    if (NOBODY !== undefined) chownSync(dataFolder, NOBODY, NOBODY);
    bridge = await BridgeProcess.start({ dataFolder, user: NOBODY, args });
  };

  test('that this user may no longer write refuses until he may', async () => {
    await start();
    await accept();
    chmodSync(runs(), 0o555);
    const refused = await untilRefused();
    expect(refused).toMatchObject({ status: 503, retryAfter: '5' });
    expect(refused.message).toMatch(/^the data folder cannot be written: EACCES/);
    expect((await readiness()).status).toBe(503);
    chmodSync(runs(), 0o755);
    await untilReady();
    await untilAccepted();
    expect(said()).toEqual([WRITE_BEGAN, WRITE_ENDED]);
  });

  test('with a file in the place of its runs refuses until they are back', async () => {
    await start();
    await accept();
    renameSync(runs(), `${runs()}-away`);
    writeFileSync(runs(), '');
    const refused = await untilRefused();
    expect(refused.status).toBe(503);
    expect(refused.message).toMatch(/^the data folder cannot be written: E(NOTDIR|EXIST)/);
    rmSync(runs());
    renameSync(`${runs()}-away`, runs());
    await untilReady();
    await untilAccepted();
  });

  test('whose disk reports an error for one run refuses that one alone, until it can be read', async () => {
    await start();
    const run = new SentRun();
    mkdirSync(join(runs(), run.traceId), { recursive: true });
    if (NOBODY !== undefined) for (const path of [runs(), join(runs(), run.traceId)]) chownSync(path, NOBODY, NOBODY);
    const log = join(runs(), run.traceId, 'telemetry.jsonl');
    // Reading and writing the first page of its memory is an I/O error for every process.
    symlinkSync('/proc/self/mem', log);
    const [refused] = await run.send(bridge.otlpUrl);
    expect(refused?.status).toBe(503);
    expect(refused?.message).toMatch(/^the data folder cannot be written: E(IO|INVAL)/);
    await accept();
    rmSync(log);
    await accept(run);
    expect(said()).toEqual([WRITE_BEGAN, WRITE_ENDED]);
  });

  test('that vanishes refuses in words, and is taken up when it is back', async () => {
    await start();
    await accept();
    renameSync(dataFolder, `${dataFolder}-away`);
    // At once, before anybody looked: what is taken must not land in a folder made in the place of the real one.
    expect(await untilRefused()).toMatchObject({ status: 503 });
    expect(existsSync(dataFolder)).toBe(false);
    const words = `The data folder ${dataFolder} cannot be used (it is gone: removed, renamed, or its volume is not mounted): bring it back; nothing is accepted until then.`;
    await until('the guard to notice', async () => (await readiness()).text.includes(`disk: ${words}\n`));
    expect(await untilRefused()).toEqual({ status: 503, message: words, retryAfter: '5' });
    renameSync(`${dataFolder}-away`, dataFolder);
    await untilReady();
    await untilAccepted();
    const noted = new Set(said());
    expect([...noted]).toEqual(expect.arrayContaining([DISK_BEGAN, DISK_ENDED]));
    // A write fails only where a request comes before the guard has noticed, which is a matter of moments.
    expect(noted.has(WRITE_ENDED)).toBe(noted.has(WRITE_BEGAN));
  });

  test('may lose its runs to somebody who tidies up, and goes on', async () => {
    await start();
    await accept();
    rmSync(runs(), { recursive: true });
    accepted = [];
    await untilAccepted();
    await untilReady();
  });

  test('that has reached its limit refuses until runs are removed', async () => {
    await start('--max-disk', '3MiB');
    const refused = await untilRefused();
    expect(refused).toMatchObject({ status: 503, retryAfter: '5' });
    expect(refused.message).toMatch(/has reached its limit .* --max-disk sets the limit/);
    for (const { traceId } of accepted) await bridge.finished(traceId);
    accepted = [];
    for (const name of readdirSync(runs())) rmSync(join(runs(), name), { recursive: true });
    await untilAccepted();
    expect(said()).toEqual([DISK_BEGAN, DISK_ENDED]);
  });
});

const faulty = FaultyDisk.create();
afterAll(() => faulty?.remove());

describe.skipIf(faulty === undefined)('a disk that reports errors', () => {
  const start = async (dataFolder?: string) => {
    bridge = await BridgeProcess.start({ env: faulty?.env ?? {}, ...(dataFolder !== undefined && { dataFolder }) });
  };
  const restart = async () => {
    await bridge.stop('SIGKILL');
    await start(bridge.dataFolder);
  };
  afterEach(() => faulty?.heal());

  test.each([
    ['of the run', 'runs'],
    ['of its record log', 'runs/TRACE/telemetry.jsonl'],
    ['of its resources', 'runs/TRACE/resources.jsonl'],
    ['of what waits for a name', 'runs/TRACE/pending.jsonl'],
  ])('on syncs %s: what is not durable is not known either, nor after a restart', async (_, path) => {
    await start();
    const run = new SentRun();
    const below = join(bridge.dataFolder, path.replace('TRACE', run.traceId));
    faulty?.fail('failsSyncs', below);
    // Log records wait as long as their spans have not come.
    const bodies = run.bodies.filter(({ signal }) => !path.includes('pending') || signal === 'logs');
    const refused = [];
    for (const body of bodies) if ((await run.sendOne(bridge.otlpUrl, body)).status !== 200) refused.push(body);
    expect(refused).not.toEqual([]);
    for (let time = 0; time < 2; time++) {
      for (const body of refused) expect(await run.sendOne(bridge.otlpUrl, body)).toMatchObject({ status: 503 });
    }
    await restart();
    for (const body of refused) expect(await run.sendOne(bridge.otlpUrl, body)).toMatchObject({ status: 503 });
    faulty?.heal();
    await accept(run);
  });

  test('on syncs of a new run’s entry in its folder: that entry is synced before it counts', async () => {
    await start();
    await accept();
    const run = new SentRun();
    const [body] = run.bodies;
    if (body === undefined) throw new Error('a run has bodies');
    faulty?.fail('failsSyncs', join(bridge.dataFolder, 'runs'));
    expect(await run.sendOne(bridge.otlpUrl, body)).toMatchObject({ status: 503 });
    expect((await readiness()).status).toBe(503);
    faulty?.heal();
    await untilReady();
    await accept(run);
  });

  test('on syncs: the process stays unready, whatever is answered meanwhile, also when it starts so', async () => {
    await start();
    await accept();
    const [known] = accepted;
    faulty?.fail('failsSyncs', join(bridge.dataFolder, 'runs'));
    expect(await untilRefused()).toMatchObject({ status: 503 });
    // It is on the disk already.
    for (const { status } of (await known?.send(bridge.otlpUrl)) ?? []) expect(status).toBe(200);
    expect((await readiness()).status).toBe(503);
    await restart();
    await until('unreadiness', async () => (await readiness()).status === 503);
    faulty?.heal();
    await untilReady();
  });

  test('on reads of its state, once: it says so and does not advise to make the state anew', async () => {
    await start();
    await accept();
    await bridge.stop();
    faulty?.fail('failsReads', join(bridge.dataFolder, 'state.db'));
    await expect(start(bridge.dataFolder)).rejects.toThrow(/^(?!.*rebuild).*state\.db/s);
    faulty?.heal();
    await start(bridge.dataFolder);
  });
});

test('what the operating system alone is to have is there after the end of the process, too', async () => {
  bridge = await BridgeProcess.start({ args: ['--durability', 'os'] });
  await accept();
  const [run] = accepted;
  await bridge.stop('SIGKILL');
  expect(readFileSync(join(bridge.runFolder(run?.traceId ?? ''), 'telemetry.jsonl'), 'utf8')).toMatch(/\n$/);
  bridge = await BridgeProcess.start({ dataFolder: bridge.dataFolder });
});
