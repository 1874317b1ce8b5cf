import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { packageFile } from '../../component/package-file.js';
import { parseDurationMs } from '../../config/duration.js';
import { listQueryFiles, MAX_QUERY_RUNS } from '../../query/list-query-files.js';
import { QueryEngine } from '../../query/query-engine.js';
import { QueryError } from '../../query/query-error.js';
import type { QueryLimits } from '../../query/query-limits.js';
import { listTraces } from '../../sink/record-log-files.js';
import { CliError } from '../cli-error.js';
import type { Invocation } from '../command-line.js';
import { EXIT, type ExitCode } from '../exit-code.js';
import { finishLeftovers } from '../finish-leftovers.js';
import { askFolderState } from '../folder-state.js';
import { refuseShared } from '../refuse-shared.js';
import { resolveForCommand } from '../resolve-for-command.js';
import { csvRows, jsonRows, type RowWriter, tableRows } from './row-writer.js';

const DEFAULT_TIMEOUT_MS = 5 * 60_000;
/** Rows of a table, unless `--limit` says otherwise: they are kept until the widths are known. */
const DEFAULT_TABLE_ROWS = 1_000;
/** The longest cell of a table, in characters. */
const MAX_CELL_CHARS = 80;
const MEMORY_MEGABYTES = 1_024;
const THREADS = 4;

/**
 * What `run-bridge query` does. It reads files, and numbers of runs from the state, so a bridge may be at work on the data
 * folder; what a killed `exec` left there is finished first.
 * @throws CliError, ConfigurationError
 */
export async function runQuery(invocation: Invocation): Promise<ExitCode> {
  const { context, switches, flags } = invocation;
  const { stdout, stderr, stop } = context;
  const isTable = !switches.has('json') && !switches.has('csv');
  if (switches.has('json') && switches.has('csv')) throw new CliError(EXIT.usage, '--json or --csv, not both');
  const limits: QueryLimits = {
    timeoutMs: timeoutOf(flags.timeout),
    maxRows: limitOf(flags.limit) ?? (isTable ? DEFAULT_TABLE_ROWS : null),
    maxResultBytes: null,
    memoryMegabytes: MEMORY_MEGABYTES,
    threads: THREADS,
  };
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) stderr.write(`run-bridge: ${warning}\n`);
  const folder = configuration['data-dir'];
  refuseShared(configuration, 'ask any of the processes with POST /api/run-bridge/v1/query');
  await finishLeftovers(configuration, context);
  if (!existsSync(join(folder, 'runs'))) {
    throw new CliError(EXIT.failed, `no run is in ${folder}; --data-dir says where runs are`);
  }
  const sql = await sqlOf(invocation);
  let leftOutCount = 0;
  const unnamed = (await askFolderState(configuration, context.clock, ({ traces }) => traces.listUnnamed())) ?? [];
  const files = async () => {
    const listed = await listQueryFiles(folder, await listTraces(folder), { unnamed });
    leftOutCount = listed.leftOutCount;
    return listed;
  };
  const engine = new QueryEngine({ entry: packageFile('dist/query-process.js'), clock: context.clock, stopping: stop });
  const writer: RowWriter = switches.has('json')
    ? jsonRows()
    : switches.has('csv')
      ? csvRows()
      : tableRows(MAX_CELL_CHARS);
  const write = async (output: string) => {
    if (output !== '' && !stdout.write(output)) await once(stdout, 'drain', { signal: stop });
  };
  try {
    for await (const answer of engine.run({ sql, files, limits }, stop)) {
      if (answer.type === 'columns') await write(writer.columns(answer.columns.map(({ name }) => name)));
      else if (answer.type === 'rows') await write(writer.rows(answer.rows));
      else await write(writer.end());
      if (answer.type === 'end' && answer.isTruncated) {
        stderr.write(`run-bridge: there are more than ${limits.maxRows} rows; --limit says how many to print\n`);
      }
    }
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    throw new CliError(EXIT.failed, error.message, { cause: error });
  }
  if (leftOutCount > 0) {
    stderr.write(`run-bridge: only the ${MAX_QUERY_RUNS} runs written to last were asked, ${leftOutCount} were not\n`);
  }
  return EXIT.ok;
}

async function sqlOf({ context, operands }: Invocation): Promise<string> {
  const [operand] = operands;
  if (operand !== undefined && operand !== '-') return operand;
  if (operand === undefined && context.isStdinTerminal) {
    throw new CliError(EXIT.usage, 'what to ask? For example: run-bridge query "SELECT * FROM runs"');
  }
  return await text(context.stdin);
}

function limitOf(flag: string | undefined): number | undefined {
  if (flag === undefined) return undefined;
  const limit = Number(flag);
  if (/^[0-9]+$/.test(flag) && Number.isSafeInteger(limit) && limit > 0) return limit;
  throw new CliError(EXIT.usage, `--limit ${flag}: must be a whole number above 0`);
}

function timeoutOf(flag: string | undefined): number {
  if (flag === undefined) return DEFAULT_TIMEOUT_MS;
  const timeoutMs = parseDurationMs(flag);
  if (timeoutMs !== undefined && timeoutMs > 0) return timeoutMs;
  throw new CliError(EXIT.usage, `--timeout ${flag}: must be a duration above 0, for example 30s or 5m`);
}
