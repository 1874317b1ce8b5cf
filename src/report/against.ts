import { lastGoodRunOf, lastRunBefore } from '../api/earlier-runs.js';
import { CliError, EXIT } from '../cli/command.js';
import { cleanLine } from '../core/text.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import { compareRuns } from '../run/measures/compare-commands.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import { type FolderDeps, type FoundReports, findReports, readOnlyMeasures, type ShownLevel } from './found-reports.js';
import { RunFiles } from './run-files.js';

/** What a report is compared with. */
export interface Against {
  /** A run or a file as reports name it, or `last-good`. */
  readonly named: string;
  /** The job whose last good run is meant; `undefined` for that of the reported run. */
  readonly job: string | undefined;
}

const LAST_GOOD = 'last-good';

/**
 * Adds to reports what is different from another run; where there is no last good run, a line on standard error says so.
 * @throws CliError
 */
export async function withComparison(
  found: FoundReports,
  against: Against,
  level: ShownLevel,
  deps: FolderDeps,
): Promise<FoundReports> {
  const { job } = against;
  if (job !== undefined && against.named !== LAST_GOOD) {
    throw new CliError(EXIT.usage, '--job says whose last good run --against is; leave it out for a run or a file');
  }
  const named = against.named === LAST_GOOD ? await lastGoodRun(found, job, deps) : against.named;
  if (named === null) {
    const whose = job === undefined ? 'before it of its job' : `of job ${JSON.stringify(job)}`;
    const note = cleanLine(
      `no run ${whose} ended with success and can be compared with it, among the last that were read`,
    );
    deps.context.stderr.write(`run-bridge: ${note}\n`);
    return found;
  }
  const before = await findReports(named, level, deps);
  const { pairs } = compareRuns(
    before.reports.map(({ command }) => command),
    found.reports.map(({ command }) => command),
  );
  if (pairs.length < found.reports.length) {
    const none = pairs.length === 0 ? 'no command' : 'not each command';
    deps.context.stderr.write(
      `run-bridge: ${none} has one to be compared with in ${cleanLine(named)}; run-bridge diff shows both runs\n`,
    );
  }
  const byCommand = new Map(pairs.map((pair) => [pair.after, pair]));
  const reports = found.reports.map((report) => {
    const pair = byCommand.get(report.command);
    return pair === undefined ? report : { ...report, against: pair };
  });
  return { ...found, reports, isDamaged: found.isDamaged || before.isDamaged };
}

/** The number of the last good run; `null` if there is none. @throws CliError where nobody knows whose it is */
async function lastGoodRun(
  { runId, scopes }: FoundReports,
  job: string | undefined,
  { configuration, host, context }: FolderDeps,
): Promise<string | null> {
  const found = await host.askState(configuration, context.clock, async (state) => {
    const files = new RunFiles(configuration['data-dir']);
    const reader = new RecordLogFiles(files.dataFolder, () => {});
    const deps = { catalog: state.catalog, measures: readOnlyMeasures({ state, files, reader }) };
    const run = runId === null ? undefined : await state.catalog.findRun(FIRST_ACCOUNT_ID, runId);
    if (job !== undefined) return await lastGoodRunOf(job, { accountId: FIRST_ACCOUNT_ID, scopes, before: run }, deps);
    if (run === undefined) {
      throw new CliError(EXIT.usage, '--against last-good: it is not known whose run this is; name the job with --job');
    }
    return await lastRunBefore({ run, scopes }, { statuses: [RUN_STATUS.success] }, deps);
  });
  return found == null ? null : String(found.id);
}
