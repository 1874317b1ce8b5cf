import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import type { RedactionLevel } from '../../src/redaction/known-names.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

/** What the project of test/fixture/redaction has in its strings, numbers and comments. */
const MARKERS = /zq[a-z]+\d{3}|7700\d{5}|7700\.\d{5}|7\.7\d{6}e8|7700-\d\d-\d\d|0x7700\d?/gi;
/** Its runs: a build with failures, a preview, and freshness of sources. */
const MARKED = resolve('test/fixture/redaction/otel.jsonl');
const RUN_COUNT = 3;
/** Each begins and ends, and the build errs. */
const EVENT_COUNT = 2 * RUN_COUNT + 1;

const KINDS = ['http', 'slack', 'teams', 'email'] as const;
type Channel = 'otlp' | (typeof KINDS)[number];

/** Keeps all that leaves a bridge, by where it goes. */
class Listener {
  readonly said: Record<Channel, string[]> = { otlp: [], http: [], slack: [], teams: [], email: [] };
  private readonly http = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const plain = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
    const channel = KINDS.find((kind) => request.url === `/${kind}`) ?? 'otlp';
    this.said[channel].push(`${JSON.stringify(request.headers)}\n${plain.toString('latin1')}`);
    response.writeHead(200, { 'content-type': request.headers['content-type'] ?? 'text/plain' }).end();
  });
  private readonly smtp = createTcpServer((socket) => {
    let mail: string | undefined;
    socket.on('error', () => {});
    socket.write('220 mail.example.com\r\n');
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1');
      if (mail !== undefined) {
        mail += text;
        if (!mail.includes('\r\n.\r\n')) return;
        this.said.email.push(decodedMail(mail));
        mail = undefined;
        socket.write('250 taken\r\n');
      } else if (/^DATA/i.test(text)) {
        mail = '';
        socket.write('354 go on\r\n');
      } else if (/^QUIT/i.test(text)) socket.end('221 bye\r\n');
      else socket.write('250 ok\r\n');
    });
  });

  async open(): Promise<void> {
    this.http.listen(0, '127.0.0.1');
    this.smtp.listen(0, '127.0.0.1');
    await Promise.all([once(this.http, 'listening'), once(this.smtp, 'listening')]);
  }

  close(): void {
    this.http.closeAllConnections();
    this.http.close();
    this.smtp.close();
  }

  get httpUrl(): string {
    return `http://127.0.0.1:${(this.http.address() as AddressInfo).port}`;
  }

  get smtpUrl(): string {
    return `smtp://127.0.0.1:${(this.smtp.address() as AddressInfo).port}`;
  }
}

/** A mail with the soft breaks and codes of quoted-printable undone, and its base64 parts read. */
function decodedMail(mail: string): string {
  const plain = mail
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  const encoded = [...mail.matchAll(/base64\r\n(?:.+\r\n)*\r\n((?:[\w+/=]+\r\n)+)/gi)];
  return [plain, ...encoded.map(([, part = '']) => Buffer.from(part, 'base64').toString())].join('\n');
}

/** Those that the marked run holds: a signature or an id may have what looks like another by chance. */
const KNOWN_MARKERS: ReadonlySet<string> = new Set(readFileSync(MARKED, 'utf8').toLowerCase().match(MARKERS));

function markersIn(texts: readonly string[]): readonly string[] {
  const found = new Set(texts.join('\n').toLowerCase().match(MARKERS));
  return [...found].filter((marker) => KNOWN_MARKERS.has(marker)).sort();
}

let listener: Listener;
let folder: string;
let bridge: BridgeProcess | undefined;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-redaction-'));
  listener = new Listener();
  await listener.open();
});
afterEach(async () => {
  await bridge?.remove();
  listener.close();
  rmSync(folder, { recursive: true, force: true });
});

const withIdSchema = z.object({ id: z.number() });
const runsSchema = z.object({ data: z.array(withIdSchema.extend({ run_steps: z.array(withIdSchema) })) });
const idOf = ({ id }: { readonly id: number }) => id;
const ACCOUNT = '/api/v2/accounts/10001';
const madeSchema = z.object({ data: z.object({ id: z.string() }) });

/** Starts a bridge that tells all of its channels, and hands it the marked runs. */
async function tellEverybody(level: RedactionLevel) {
  const own = ['--redaction', level, '--log-level', 'debug', '--log-format', 'json'];
  const server = await BridgeProcess.start({
    args: [...own, '--webhook-allow', 'loopback', '--smtp-url', listener.smtpUrl],
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: listener.httpUrl },
  });
  bridge = server;
  const admin = readFileSync(join(server.dataFolder, 'admin-token'), 'utf8').trim();
  const ids: string[] = [];
  for (const type of KINDS) {
    const client_url = type === 'email' ? 'mailto:team@example.com' : `${listener.httpUrl}/${type}`;
    const answer = await fetch(`${server.webUrl}/api/run-bridge/v1/webhooks`, {
      method: 'POST',
      headers: { authorization: `Token ${admin}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ name: type, type, client_url },
        event_types: ['job.run.started', 'job.run.errored', 'job.run.completed'],
      }),
    });
    const text = await answer.text();
    expect(answer.status, text).toBe(201);
    ids.push(madeSchema.parse(JSON.parse(text)).data.id);
  }
  const imported = await runBridge(['import', MARKED, '--to', server.otlpUrl, '--notify'], { cwd: folder });
  expect(imported, imported.stderr).toMatchObject({ exitCode: 0 });
  // People get one message of the run that errored.
  const countOf = (kind: Channel) => (kind === 'http' ? EVENT_COUNT : EVENT_COUNT - 1);
  const isReported = (channel: Channel) => listener.said[channel].length >= countOf(channel);
  await until('every message', () => KINDS.every(isReported));
  const ask = async (path: string, token: string) => {
    const answer = await fetch(server.webUrl + path, { headers: { authorization: `Bearer ${token}` } });
    return { status: answer.status, text: `${JSON.stringify([...answer.headers])}\n${await answer.text()}` };
  };
  const listed = await fetch(`${server.webUrl}${ACCOUNT}/runs/?include_related=["run_steps"]`, {
    headers: { authorization: `Token ${admin}` },
  });
  const runs = runsSchema.parse(await listed.json()).data;
  expect(runs).toHaveLength(RUN_COUNT);
  const steps = runs.flatMap(({ run_steps }) => run_steps);
  return { server, admin, ask, paths: pathsOf(runs.map(idOf), steps.map(idOf), ids) };
}

/** A token of the one permission set that reads what was sent, and no artifacts. */
async function tokenForHooks({ dataFolder }: BridgeProcess): Promise<string> {
  const create = ['token', 'create', '--name', 'hooks', '--permission', 'webhooks_only', '--data-dir', dataFolder];
  const created = await runBridge(create, { cwd: folder });
  expect(created, created.stderr).toMatchObject({ exitCode: 0 });
  return created.stdout.trim();
}

/** What can be asked of the marked runs, and of the subscriptions that were told of them. */
function pathsOf(runs: readonly number[], steps: readonly number[], ids: readonly string[]): readonly string[] {
  const own = '/api/run-bridge/v1';
  const related = encodeURIComponent('["run_steps","debug_logs","trigger","job"]');
  return [
    ...['/', '/webhooks', '/metrics', `${ACCOUNT}/runs/`, `${own}/webhooks`],
    ...runs.flatMap((run) => [
      ...[`/runs/${run}`, `${ACCOUNT}/runs/${run}/?include_related=${related}`, `${ACCOUNT}/runs/${run}/artifacts/`],
      ...['', '/nodes', '/measures', '/records'].map((of) => `${own}/runs/${run}${of}`),
    ]),
    ...steps.map((step) => `${ACCOUNT}/steps/${step}/?include_related=${related}`),
    ...ids.flatMap((id) => [
      ...[`/webhooks/${id}`, `${own}/webhooks/${id}`, `${own}/webhooks/${id}/preview`],
      ...['', '/events', '/events?include_receipts=true'].map(
        (of) => `/api/v3/accounts/10001/webhooks/subscription/${id}${of}`,
      ),
    ]),
  ];
}

test.each<RedactionLevel>(['literals', 'statements'])(
  'at level %s no value of a project leaves the bridge, whichever way, nor reaches who may not read artifacts',
  async (level) => {
    const { server, admin, paths, ask } = await tellEverybody(level);
    const hooks = await tokenForHooks(server);
    const answers: { path: string; status: number; text: string }[] = [];
    for (const path of paths) answers.push({ path, ...(await ask(path, hooks)) });
    const whole: string[] = [];
    for (const path of paths) whole.push((await ask(path, admin)).text);
    const metrics = await ask('/metrics', admin);
    expect(await server.stop()).toBe(0);

    for (const { path, text } of answers) expect(markersIn([text]), path).toEqual([]);
    const statuses = new Map(answers.map(({ path, status }) => [path, status]));
    expect([...statuses].filter(([path, status]) => path.includes('webhooks') && status !== 200)).toEqual([]);
    expect([...statuses].filter(([path, status]) => path.includes('runs') && status < 400)).toEqual([]);
    for (const [channel, texts] of Object.entries(listener.said)) expect(markersIn(texts), channel).toEqual([]);
    expect(markersIn([server.stderr, server.stdout, metrics.text])).toEqual([]);

    // What they say all the same: how it ended, of what, and why.
    expect(listener.said.otlp.join('\n')).toContain('test_failed');
    for (const kind of ['slack', 'teams', 'email'] as const)
      expect(listener.said[kind].join('\n'), kind).toContain('Conversion Error');
    expect(server.stderr).toContain('a command ended');
    expect(metrics.status).toBe(200);
    expect(markersIn(whole).length).toBeGreaterThan(10);
  },
);

test('at level off every way shows values, so that these tests would find them', async () => {
  const { server } = await tellEverybody('off');
  expect(await server.stop()).toBe(0);
  const { http, ...said } = listener.said;
  for (const [channel, texts] of Object.entries(said)) expect(markersIn(texts).length, channel).toBeGreaterThan(0);
  // The platform's payload has no more of an error than how many there were.
  expect(http.join('\n')).toContain('runStatusMessage');
});
