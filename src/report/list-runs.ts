import { runDocument } from '../api/native/run-document.js';
import { RunMeasures } from '../api/run-measures.js';
import { causeText, containing } from '../api/run-search.js';
import { CliError, EXIT, type ExitCode, type Invocation } from '../cli/command.js';
import { readConfiguration, refuseElsewhere } from '../cli/command-configuration.js';
import type { Configuration } from '../config/configuration.js';
import { parseDurationMs } from '../config/duration.js';
import { nearestName } from '../config/suggestion.js';
import { silentLogger } from '../core/logger.js';
import { alignedRows, cleanLine, counted, cut, harmlessJson, lengthText } from '../core/text.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import { Redactor } from '../redaction/redactor.js';
import { RUN_WORDS } from '../run/words.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { Page } from '../storage/database.js';
import type { CatalogRun, CatalogStep, RunCatalog, RunQuery } from '../storage/run-catalog.js';
import type { State } from '../storage/state.js';
import { RUN_STATUS, type RunStatus, STATUS_NAMES } from '../storage/state-tables.js';
import { settingOf } from './command.js';
import type { ReportSetting } from './content.js';
import type { ReportHost } from './found-reports.js';

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1_000;
/** A hundred years. */
const MAX_SINCE_MS = 36_525 * 86_400_000;

/** Runs `run-bridge runs`. @throws CliError, ConfigurationError */
export async function listRuns(invocation: Invocation, host: ReportHost): Promise<ExitCode> {
  const { context, flags } = invocation;
  const isJson = isJsonFormat(flags.format);
  const query = readQuery(flags, context.clock.nowUnixMs());
  const accountId = readCount('--account', flags.account, FIRST_ACCOUNT_ID, Number.MAX_SAFE_INTEGER);
  const configuration = await readConfiguration(invocation);
  refuseElsewhere(configuration);
  await host.finishLeftovers(configuration, context);
  const found = await host.askState(configuration, context.clock, async ({ catalog, measures: store }) => {
    const { measures } = folderMeasures(configuration, store);
    const causes = new FailureCauses(catalog, measures);
    try {
      if (query.textContains !== undefined) await causes.measure(accountId, query);
      const page = await catalog.listRuns(accountId, query);
      const steps = await catalog.stepsOf(
        accountId,
        page.items.map(({ id }) => id),
      );
      return { page, steps, causes: isJson ? new Map<number, string>() : await causes.of(page.items, steps) };
    } finally {
      await measures.shutdown();
    }
  });
  if (found === undefined) {
    const folder = configuration['data-dir'];
    throw new CliError(EXIT.failed, `no run is in ${folder}; set the folder with --data-dir`);
  }
  const { page, steps, causes } = found;
  if (isJson) context.stdout.write(jsonList(page, steps));
  else context.stdout.write(textList(page, causes, settingOf(context), context.clock.nowUnixMs()));
  return EXIT.ok;
}

/** Opens the record logs of a data folder, and measures of runs in it that are over. */
export function folderMeasures({ 'data-dir': folder }: Pick<Configuration, 'data-dir'>, store: State['measures']) {
  const reader = new RecordLogFiles(folder, () => {});
  // Runs under way would need the tracker.
  const tracker = { find: async () => undefined };
  return { reader, measures: new RunMeasures({ store, tracker, reader, logger: silentLogger }) };
}

/** Runs that failed of which a search makes sure that they were measured: the latest. */
const MAX_SEARCHED = 200;

/** Why runs failed. What was not measured by a bridge is measured now, and stored. */
class FailureCauses {
  constructor(
    private readonly catalog: RunCatalog,
    private readonly measures: RunMeasures,
  ) {}

  /** By the number of the run; none of runs whose record log is not here. */
  async of(runs: readonly CatalogRun[], steps: readonly CatalogStep[]): Promise<ReadonlyMap<number, string>> {
    const causes = new Map<number, string>();
    for (const { id, status } of runs) {
      if (status !== RUN_STATUS.error) continue;
      const own = steps.filter(({ runId }) => runId === id);
      const cause = causeText((await this.digestsOf(own)) ?? [], 'off');
      if (cause !== null) causes.set(id, cause);
    }
    return causes;
  }

  /** Measures the latest failed runs among those that are searched: errors are found in what was measured. */
  async measure(accountId: number, { textContains: _text, errorTexts: _errors, ...query }: RunQuery): Promise<void> {
    const { error } = RUN_STATUS;
    if (query.statuses?.includes(error) === false) return;
    const { items } = await this.catalog.listRuns(accountId, { ...query, statuses: [error], limit: MAX_SEARCHED });
    const ids = items.map(({ id }) => id);
    for (const step of await this.catalog.stepsOf(accountId, ids)) await this.digestsOf([step]);
  }

  private async digestsOf(steps: readonly CatalogStep[]) {
    const known = await this.measures.digestsOf(steps);
    if (known !== undefined) return known;
    await this.measures.ofSteps(steps);
    return await this.measures.digestsOf(steps);
  }
}

/** @throws CliError for a format that is neither */
export function isJsonFormat(name: string | undefined): boolean {
  if (name === undefined || name === 'text') return false;
  if (name === 'json') return true;
  throw new CliError(EXIT.usage, `--format: ${JSON.stringify(name)} is neither text nor json`);
}

function readQuery(flags: Invocation['flags'], nowUnixMs: number): RunQuery {
  const { job, environment, project, status, text, since, limit } = flags;
  return {
    ...(job !== undefined && { jobName: job }),
    ...(environment !== undefined && { environmentName: environment }),
    ...(project !== undefined && { projectName: project }),
    ...(status !== undefined && { statuses: status.split(',').map(readStatus) }),
    ...(text !== undefined && containing(text, 'off')),
    ...(since !== undefined && { createdRange: [readSince(since, nowUnixMs), Number.MAX_SAFE_INTEGER] as const }),
    orderBy: 'created',
    isDescending: true,
    limit: readCount('--limit', limit, DEFAULT_LIMIT, MAX_LIMIT),
    offset: 0,
  };
}

/** By their words, and by the names that the API has for them. */
const STATUSES: ReadonlyMap<string, RunStatus> = new Map(
  Object.values(RUN_STATUS).flatMap((status) => [
    [RUN_WORDS[status], status],
    [STATUS_NAMES[status], status],
  ]),
);

function readStatus(text: string): RunStatus {
  const name = text.trim().toLowerCase();
  const status = STATUSES.get(name);
  if (status !== undefined) return status;
  const names = Object.values(RUN_WORDS);
  const near = nearestName(name, [...STATUSES.keys()]);
  const hint = near === undefined ? names.join(', ') : `did you mean ${near}?`;
  throw new CliError(EXIT.usage, `--status: ${JSON.stringify(text)} is no status; ${hint}`);
}

function readSince(text: string, nowUnixMs: number): number {
  const agoMs = parseDurationMs(text, MAX_SINCE_MS);
  if (agoMs !== undefined) return nowUnixMs - agoMs;
  const date = /^\d{4}-\d\d-\d\d(?:$|T)/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(date)) return date;
  throw new CliError(
    EXIT.usage,
    `--since: ${JSON.stringify(text)} is neither a time such as 24h nor a date such as 2026-11-20`,
  );
}

function readCount(flag: string, text: string | undefined, byDefault: number, max: number): number {
  if (text === undefined) return byDefault;
  const count = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= max) return count;
  throw new CliError(EXIT.usage, `${flag}: ${JSON.stringify(text)} is not a number from 1 to ${max}`);
}

/** Runs as the API has them, with all texts. */
function jsonList({ items, totalCount }: Page<CatalogRun>, steps: readonly CatalogStep[]): string {
  const whole = new Redactor('off');
  const runs = items.map((run) => runDocument({ run, steps: steps.filter(({ runId }) => runId === run.id) }, whole));
  return `${harmlessJson(JSON.stringify({ runs, total_count: totalCount }, null, 2))}\n`;
}

const HEADINGS = ['RUN', 'STATUS', 'JOB', 'ENVIRONMENT', 'PROJECT', 'STARTED (UTC)', 'LENGTH', 'WHY'];
/** Longest name and longest cause where no terminal limits them, in characters. */
const MAX_NAME = 40;
const MAX_CAUSE = 200;

const COLORS: Readonly<Partial<Record<RunStatus, string>>> = {
  [RUN_STATUS.error]: '1;31',
  [RUN_STATUS.success]: '32',
  [RUN_STATUS.cancelled]: '33',
};

/** A table, no wider than the terminal. */
function textList(
  { items, totalCount }: Page<CatalogRun>,
  causes: ReadonlyMap<number, string>,
  setting: ReportSetting,
  nowUnixMs: number,
): string {
  if (items.length === 0) return 'no run is like that\n';
  const [head = '', ...rows] = alignedRows([
    HEADINGS,
    ...items.map((run) => cells(run, causes.get(run.id), nowUnixMs)),
  ]).map((line) => cut(line, setting.columns ?? Number.POSITIVE_INFINITY));
  const shown = rows.map((row, index) => {
    const run = items[index];
    const color = setting.hasColor && run !== undefined ? COLORS[run.status] : undefined;
    const status = run === undefined ? '' : RUN_WORDS[run.status];
    return color === undefined ? row : row.replace(` ${status} `, ` \u001b[${color}m${status}\u001b[0m `);
  });
  const rest =
    totalCount > items.length
      ? [`and ${totalCount - items.length} more of ${counted(totalCount, 'run')}; --limit shows them`]
      : [];
  return [head, ...shown, ...rest].map((line) => `${line}\n`).join('');
}

function cells(run: CatalogRun, cause: string | undefined, nowUnixMs: number): readonly string[] {
  const startedUnixMs = run.startedUnixMs ?? run.dequeuedUnixMs;
  const name = (text: string) => cut(cleanLine(text), MAX_NAME);
  return [
    String(run.id),
    RUN_WORDS[run.status],
    name(run.job.name),
    name(run.environment.name),
    name(run.project.name),
    new Date(startedUnixMs ?? run.createdUnixMs).toISOString().slice(0, 16).replace('T', ' '),
    startedUnixMs === null ? '-' : lengthText((run.finishedUnixMs ?? nowUnixMs) - startedUnixMs),
    cut(cleanLine(cause ?? run.statusMessage ?? run.runKey ?? ''), MAX_CAUSE),
  ];
}
