import express, { type Response, Router } from 'express';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticator.js';
import type { Caller } from '../api/caller.js';
import { goneOf, Permits, withPermit } from '../api/permissions.js';
import type { Clock } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { DiskUsage, MemoryUsage } from '../core/guard.js';
import type { Health, HealthReport } from '../core/health.js';
import { lengthText, readableBytes } from '../core/text.js';
import type { DestinationStatus, DestinationTest, TestAnswer } from '../export/feature.js';
import type { Sighting } from '../otlp/engine-sightings.js';
import type { RetainedKind } from '../retention/feature.js';
import { FIRST_ACCOUNT_ID, type TokenRow } from '../storage/account-store.js';
import type { State } from '../storage/state.js';
import { Layout, sendPage } from '../web/page/layout.js';
import { countText, Fact, Mark, Moment, type Mood, ScrollTable } from '../web/page/parts.js';

/** Settings that the page names. */
export interface SettingsConfig {
  readonly 'data-dir': string;
  readonly 'database-url': string;
  readonly processes: 'one' | 'several';
}

/** What the page shows of the program: what metrics and health checks know as well. */
export interface SettingsHost {
  readonly state: Pick<State, 'tokens' | 'catalog'>;
  readonly health: Pick<Health, 'report'>;
  readonly memory: { readonly usage: MemoryUsage };
  readonly disk: { readonly usage: DiskUsage };
  /** Names of all destinations. */
  readonly destinations: readonly string[];
  /** One that is configured and off; `undefined` where there is none. */
  readonly offDestination?: { readonly name: string; readonly reason: string } | undefined;
  /** OpenTelemetry's variables that are ignored, each with what is wrong, in a sentence; left out: none. */
  readonly ignoredVariables?: readonly string[];
  /** `undefined` where this process exports nothing: there is no destination, or others export. */
  readonly exports:
    | {
        /** Names, and where they are. */
        readonly destinations: readonly (readonly [name: string, where: string])[];
        statuses(): readonly DestinationStatus[];
        /** `undefined` where there is none of that name. @throws Error if exports are not running */
        test(destination: string, deadline: AbortSignal): Promise<DestinationTest | undefined>;
      }
    | undefined;
  /** Telemetry that came of which it is not plain whether it is the engine's. */
  readonly sightings: { list(): readonly Sighting[] };
  /** What is kept, and for how long. */
  readonly retention: { readonly kinds: readonly Pick<RetainedKind, 'name' | 'limits' | 'totalBytes'>[] };
  /** Where it listens; `null` for no gRPC. */
  readonly ports: () => { readonly otlpUrl: string; readonly grpcUrl: string | null; readonly webUrl: string };
  /** Version of Node, without `v`. */
  readonly nodeVersion: string;
  readonly clock: Clock;
  /** The program's version. */
  readonly version: string;
}

/** What the page works with. */
type PageHost = SettingsHost & { /** When the program was started. */ readonly startedUnixMs: number };

/** A kind of data with what it takes. */
interface KeptKind {
  readonly name: string;
  readonly sizeBytes: number;
  readonly maxAgeMs: number | null;
  readonly maxBytes: number | null;
}

/** What the page shows. */
interface Shown {
  readonly caller: Caller;
  readonly config: SettingsConfig;
  readonly host: PageHost;
  readonly report: HealthReport;
  readonly tokens: readonly TokenRow[];
  readonly kept: readonly KeptKind[];
  readonly runCount: number;
  readonly nowUnixMs: number;
  /** The test of a destination that was just made; `null` for none. */
  readonly tested: Tested | null;
}

/** A destination that was tested, and what it answered, or why nothing was sent. */
interface Tested {
  readonly destination: string;
  readonly outcome: DestinationTest | string;
}

/** A test is given up after so long, in milliseconds. */
const TEST_MS = 15_000;
const MAX_FORM_BYTES = 4_096;
/** Sizes are measured again after this time, in milliseconds: with many runs it takes seconds, and an open page asks again and again. */
const SIZES_MS = 60_000;

/** `/settings`: tokens, destinations, storage, health and versions. Who is of another account than the first sees its own tokens and health alone. */
export function settingsPages(config: SettingsConfig, host: PageHost): Router {
  const { state, health, clock } = host;
  const permits = new Permits('tests of destinations');
  const router = Router();
  const form = express.urlencoded({ extended: false, limit: MAX_FORM_BYTES });
  let last: { readonly atMs: number; readonly kept: Promise<readonly KeptKind[]> } | undefined;
  router.get('/settings', authorize('tokens:manage'), (_, response) => show(response, null));
  router.post('/settings/test', authorize('tokens:manage'), form, async (request, response) => {
    const destination: unknown = request.body?.destination;
    const isOperator = callerOf(response).accountId === FIRST_ACCOUNT_ID;
    if (!isOperator || typeof destination !== 'string') throw ApiError.notFound();
    const outcome = await withPermit(permits, response, () => test(destination, goneOf(response)));
    if (outcome === undefined) throw ApiError.notFound();
    await show(response, { destination, outcome });
  });
  return router;

  async function test(destination: string, gone: AbortSignal): Promise<DestinationTest | string | undefined> {
    const deadline = new AbortController();
    const timer = clock.after(TEST_MS, () => deadline.abort());
    try {
      return await host.exports?.test(destination, AbortSignal.any([gone, deadline.signal]));
    } catch (error) {
      return reasonOf(error);
    } finally {
      timer.cancel();
    }
  }

  /** What is kept, measured at most a minute ago. */
  function measured(): Promise<readonly KeptKind[]> {
    const nowMs = clock.monotonicMs();
    if (last === undefined || nowMs - last.atMs >= SIZES_MS) {
      const begun = { atMs: nowMs, kept: measure() };
      begun.kept.catch(() => {
        if (last === begun) last = undefined;
      });
      last = begun;
    }
    return last.kept;
  }

  async function measure(): Promise<readonly KeptKind[]> {
    const whole = new AbortController().signal;
    const kept: KeptKind[] = [];
    for (const kind of host.retention.kinds) {
      kept.push({ name: kind.name, ...kind.limits, sizeBytes: await kind.totalBytes(whole) });
    }
    return kept;
  }

  async function show(response: Response, tested: Tested | null): Promise<void> {
    const caller = callerOf(response);
    const tokens = (await state.tokens.list()).filter(({ accountId }) => accountId === caller.accountId);
    const isOperator = caller.accountId === FIRST_ACCOUNT_ID;
    const kept = isOperator ? await measured() : [];
    const one = { orderBy: 'id', isDescending: true, limit: 1, offset: 0 } as const;
    const { totalCount: runCount } = await state.catalog.listRuns(caller.accountId, one);
    const shown = {
      caller,
      config,
      host,
      report: health.report(),
      tokens,
      kept,
      runCount,
      nowUnixMs: clock.nowUnixMs(),
      tested,
    };
    await sendPage(response, <SettingsPage {...shown} />);
  }
}

function SettingsPage(shown: Shown) {
  const { caller, host, report, tokens, nowUnixMs, tested } = shown;
  const isLive = tested === null;
  const isOperator = caller.accountId === FIRST_ACCOUNT_ID;
  return (
    <Layout title="Settings" caller={caller} version={host.version} isLive={isLive}>
      <h1>Settings</h1>
      {tested !== null && <TestNotice {...tested} />}
      <div id="live" {...(isLive && { 'data-live': '10000' })}>
        <HealthPart report={report} host={host} />
        {isOperator && <Destinations {...host} />}
        {isOperator && <Sightings list={host.sightings.list()} />}
        {isOperator && <Storage {...shown} />}
        <Tokens tokens={tokens} nowUnixMs={nowUnixMs} />
        {isOperator && <About {...shown} />}
      </div>
    </Layout>
  );
}

/** What a destination answered to a test. */
function TestNotice({ destination, outcome }: Tested) {
  if (typeof outcome === 'string') {
    return (
      <p class="notice below bad" role="status">
        <span class="strong">{destination}</span> was not tested: {outcome}.
      </p>
    );
  }
  const isGood = outcome.answers.every(({ result }) => result.kind === 'accepted' && result.rejectedCount === 0);
  return (
    <div class={`notice below ${isGood ? 'good' : 'bad'}`} role="status">
      <p>
        <span class="strong">{destination}</span> {isGood ? 'took the test.' : 'did not take all of the test.'}{' '}
        {outcome.answers.some(({ result }) => result.kind === 'accepted') && (
          <>
            Look there for trace <code>{outcome.traceId}</code>, service <code>run-bridge</code>.
          </>
        )}
      </p>
      <ul>
        {outcome.answers.map((answer) => (
          <li>
            {answer.signal === 'traces' ? 'Span' : 'Log record'}: {answerText(answer)}
          </li>
        ))}
      </ul>
    </div>
  );
}

function answerText({ result, durationMs }: TestAnswer): string {
  const status = result.status === null || result.status === 0 ? null : `HTTP ${result.status}`;
  const after = `after ${lengthText(durationMs)}`;
  const message = result.message === '' ? '' : `: ${result.message}`;
  if (result.kind !== 'accepted') return `${status ?? 'no answer'} ${after}${message}`;
  const rejected = result.rejectedCount === 0 ? '' : `, but ${result.rejectedCount} was rejected`;
  return `taken${status === null ? '' : `, ${status}`} ${after}${rejected}${message}`;
}

function HealthPart({ report, host }: { readonly report: HealthReport; readonly host: PageHost }) {
  const { usedBytes, limitBytes } = host.memory.usage;
  const { freeBytes, totalBytes } = host.disk.usage;
  return (
    <section aria-labelledby="health">
      <h2 id="health">Health</h2>
      <dl class="facts">
        <Fact name="State">
          <Mark word={report.ready ? 'ready' : 'not ready'} mood={report.ready ? 'good' : 'bad'} />
        </Fact>
        <Fact name="Memory">
          {readableBytes(usedBytes)} of {readableBytes(limitBytes)}
        </Fact>
        <Fact name="Disk">
          {readableBytes(freeBytes)} free of {readableBytes(totalBytes)}
        </Fact>
        <Fact name="Started">
          <Moment unixMs={host.startedUnixMs} isRelative />
        </Fact>
      </dl>
      {report.checks.some(({ state }) => !state.ready) && (
        <ul class="notice bad">
          {report.checks.map(
            ({ name, state }) =>
              !state.ready && (
                <li>
                  <span class="strong">{name}</span>: {state.reason}
                </li>
              ),
          )}
        </ul>
      )}
      <p class="hint">
        For programs: <a href="/readyz?verbose">/readyz?verbose</a>, <code>/metrics</code>
      </p>
    </section>
  );
}

const STATES: Readonly<Record<DestinationStatus['state'], readonly [word: string, mood: Mood]>> = {
  idle: ['up to date', 'good'],
  sending: ['sending', 'busy'],
  waiting: ['failing', 'bad'],
  stopped: ['stopped', 'neutral'],
};

function Destinations({ exports, destinations, offDestination, ignoredVariables = [] }: SettingsHost) {
  const statuses = new Map(exports?.statuses().map((status) => [status.name, status]));
  return (
    <section aria-labelledby="destinations">
      <h2 id="destinations">Destinations</h2>
      {(offDestination !== undefined || ignoredVariables.length > 0) && (
        <ul class="notice bad">
          {offDestination !== undefined && (
            <li>
              <span class="strong">{offDestination.name}</span> is off: {offDestination.reason}. Correct it, and start
              run-bridge again.
            </li>
          )}
          {ignoredVariables
            .filter((problem) => offDestination?.reason.includes(problem) !== true)
            .map((problem) => (
              <li>{problem}; it is ignored.</li>
            ))}
        </ul>
      )}
      {destinations.length === 0 && (
        <div class="empty">
          <p>Nothing is exported. To send runs on, name an OTLP endpoint:</p>
          <pre class="command" tabindex={0}>
            OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:14318 run-bridge serve
          </pre>
        </div>
      )}
      {destinations.length > 0 && exports === undefined && (
        <p class="hint">
          Runs go to <span class="strong">{destinations.join(', ')}</span> from the processes that build them, not from
          this one. How far they are, the <code>/readyz?verbose</code> and <code>/metrics</code> of each of these say.
        </p>
      )}
      {exports !== undefined && (
        <ScrollTable
          label="Destinations"
          columns={[
            'Destination',
            'State',
            { number: 'Behind' },
            { number: 'Oldest' },
            { number: 'Sent' },
            { number: 'Refused' },
            'Last error',
            'Test',
          ]}
        >
          {exports.destinations.map(([name, where]) => (
            <DestinationRow name={name} where={where} status={statuses.get(name)} />
          ))}
        </ScrollTable>
      )}
    </section>
  );
}

const SIGHTING_WORDS: Readonly<Record<Sighting['kind'], readonly [word: string, mood: Mood]>> = {
  new: ['taken as the engine', 'good'],
  passed: ['passed on', 'neutral'],
};

/** Names under which telemetry came that is the engine's, or might be. */
function Sightings({ list }: { readonly list: readonly Sighting[] }) {
  if (list.length === 0) return null;
  return (
    <section aria-labelledby="sightings">
      <h2 id="sightings">Names that are not known</h2>
      <p class="hint">
        Since the start, this process received telemetry of the engine under new names, or telemetry of other services
        with a name or attributes of the engine&apos;s, whose SQL is redacted before it is passed on. The setting{' '}
        <code>engine-names</code> says which names are the engine&apos;s.
      </p>
      <ScrollTable
        label="Names that are not known"
        columns={['Service', 'Scope', 'What became of it', { number: 'Items' }]}
      >
        {list.map(({ kind, service, scope, itemCount }) => {
          const [word, mood] = SIGHTING_WORDS[kind];
          return (
            <tr>
              <th scope="row" class="name">
                {service}
              </th>
              <td>{scope}</td>
              <td>
                <Mark word={word} mood={mood} />
              </td>
              <td class="number">{itemCount.toLocaleString('en')}</td>
            </tr>
          );
        })}
      </ScrollTable>
    </section>
  );
}

function DestinationRow(props: {
  readonly name: string;
  readonly where: string;
  /** `undefined` until exports have started. */
  readonly status: DestinationStatus | undefined;
}) {
  const { name, where, status } = props;
  const [word, mood] = status === undefined ? (['starting', 'neutral'] as const) : STATES[status.state];
  const signals = status === undefined ? [] : Object.values(status.signals);
  const sum = (of: (signal: (typeof signals)[number]) => number) =>
    signals.reduce((all, signal) => all + of(signal), 0).toLocaleString('en');
  return (
    <tr>
      <th scope="row" class="name">
        {name}
        <span class="sub name">{where}</span>
      </th>
      <td>
        <Mark word={word} mood={mood} />
      </td>
      <td class="number nowrap">
        {status === undefined ? '–' : readableBytes(status.lagBytes)}
        {status !== undefined && status.pendingRuns > 0 && (
          <span class="sub">{countText(status.pendingRuns, 'run')}</span>
        )}
      </td>
      <td class="number nowrap">
        {status === undefined || status.oldestUnsentSeconds === 0
          ? '–'
          : lengthText(status.oldestUnsentSeconds * 1_000)}
      </td>
      <td class="number">{sum(({ sentCount }) => sentCount)}</td>
      <td class="number">{sum(({ refusedCount, rejectedCount }) => refusedCount + rejectedCount)}</td>
      <td class="text">{status?.lastError ?? ''}</td>
      <td class="nowrap">
        <form method="post" action="/settings/test">
          <input type="hidden" name="destination" value={name} />
          <button type="submit" aria-label={`Send a test to ${name}`} title="Sends a span named run-bridge test">
            Send a test
          </button>
        </form>
      </td>
    </tr>
  );
}

const KINDS: Readonly<Record<string, string>> = {
  telemetry: 'Runs',
  artifacts: 'Artifacts',
  deliveries: 'Deliveries of webhooks',
  foreign: 'Telemetry of other services',
};
const DAY_MS = 86_400_000;

function Storage({ kept, runCount, config }: Shown) {
  return (
    <section aria-labelledby="storage">
      <h2 id="storage">Storage and retention</h2>
      <ScrollTable
        label="What is kept"
        columns={['What', { number: 'Takes' }, { number: 'Kept for' }, { number: 'At most' }]}
      >
        {kept.map(({ name, sizeBytes, maxAgeMs, maxBytes }) => {
          const setting = name === 'foreign' ? 'telemetry' : name;
          return (
            <tr>
              <th scope="row">
                {KINDS[name] ?? name}
                {name === 'telemetry' && <span class="sub">{countText(runCount, 'run')} of this account</span>}
                <span class="sub">
                  <code>retain-{setting}</code>
                </span>
              </th>
              <td class="number nowrap">{readableBytes(sizeBytes)}</td>
              <td class="number nowrap">{maxAgeMs === null ? 'no limit' : ageText(maxAgeMs)}</td>
              <td class="number nowrap">{maxBytes === null ? 'no limit' : readableBytes(maxBytes)}</td>
            </tr>
          );
        })}
      </ScrollTable>
      <p class="hint">
        {config['database-url'] === 'off'
          ? 'The state is in the data folder (SQLite).'
          : `The state is in PostgreSQL${config.processes === 'several' ? ', shared by several processes' : ''}.`}{' '}
        Sizes are at most a minute old. What would go with other limits:{' '}
        <code>run-bridge retain --dry-run --retain-telemetry 90d</code>
      </p>
    </section>
  );
}

function ageText(ms: number): string {
  return ms >= 2 * DAY_MS && ms % DAY_MS === 0 ? countText(ms / DAY_MS, 'day') : lengthText(ms);
}

/** Tokens that are shown; the command line lists all. */
const MAX_TOKENS = 200;

function Tokens({ tokens, nowUnixMs }: { readonly tokens: readonly TokenRow[]; readonly nowUnixMs: number }) {
  const isGood = ({ revokedUnixMs, expiresUnixMs }: TokenRow) =>
    revokedUnixMs === null && (expiresUnixMs === null || expiresUnixMs > nowUnixMs);
  const sorted = [...tokens].sort((a, b) => Number(isGood(b)) - Number(isGood(a)) || b.id - a.id);
  return (
    <section aria-labelledby="tokens">
      <h2 id="tokens">Tokens</h2>
      <ScrollTable
        label="Tokens, those that are good first"
        columns={[{ number: 'Id' }, 'Name', 'Permission', 'Created', 'Last used', 'State']}
      >
        {sorted.slice(0, MAX_TOKENS).map((token) => (
          <tr>
            <td class="number">{token.id}</td>
            <th scope="row" class="name">
              {token.name}
              {token.userName !== null && <span class="sub name">{token.userName}</span>}
            </th>
            <td>{token.permission.replaceAll('_', ' ')}</td>
            <td class="nowrap">
              <Moment unixMs={token.createdUnixMs} isRelative />
            </td>
            <td class="nowrap">
              {token.usedUnixMs === null ? 'never' : <Moment unixMs={token.usedUnixMs} isRelative />}
            </td>
            <td class="nowrap">
              <TokenState token={token} isGood={isGood(token)} />
            </td>
          </tr>
        ))}
      </ScrollTable>
      {tokens.length > MAX_TOKENS && (
        <p>
          and {(tokens.length - MAX_TOKENS).toLocaleString('en')} more; <code>run-bridge token list</code> has all
        </p>
      )}
      <p class="hint">
        Tokens are made and revoked on the command line, where a new one is shown once:{' '}
        <code>run-bridge token create --name airflow --permission developer --expires 90d</code>,{' '}
        <code>run-bridge token revoke ID</code>
      </p>
    </section>
  );
}

function TokenState({ token, isGood }: { readonly token: TokenRow; readonly isGood: boolean }) {
  const { revokedUnixMs, expiresUnixMs } = token;
  if (revokedUnixMs !== null) return <Mark word="revoked" mood="neutral" />;
  return (
    <>
      <Mark word={isGood ? 'good' : 'expired'} mood={isGood ? 'good' : 'neutral'} />
      {expiresUnixMs !== null && (
        <span class="sub">
          {isGood ? 'until ' : ''}
          <Moment unixMs={expiresUnixMs} />
        </span>
      )}
    </>
  );
}

function About({ host, config }: Shown) {
  const { otlpUrl, grpcUrl, webUrl } = host.ports();
  return (
    <section aria-labelledby="about">
      <h2 id="about">This bridge</h2>
      <dl class="facts">
        <Fact name="run-bridge">{host.version}</Fact>
        <Fact name="Node">{host.nodeVersion}</Fact>
        <Fact name="OTLP over HTTP">{otlpUrl}</Fact>
        <Fact name="OTLP over gRPC">{grpcUrl ?? 'off'}</Fact>
        <Fact name="Pages and API">{webUrl}</Fact>
        <Fact isName name="Data folder">
          {config['data-dir']}
        </Fact>
      </dl>
      <p class="hint">
        <code>run-bridge config</code> prints each setting and where it came from.
      </p>
    </section>
  );
}
