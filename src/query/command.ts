import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { CliError, EXIT, type ExitCode, type Invocation } from '../cli/command.js';
import { readConfiguration, refuseShared } from '../cli/command-configuration.js';
import { parseDurationMs } from '../config/duration.js';
import type { CommandHost } from '../feature.js';
import { listTraces } from '../log/record-log-files.js';
import { QueryEngine } from './engine.js';
import { listQueryFiles, MAX_QUERY_RUNS } from './files.js';
import { QueryError, type QueryLimits } from './protocol.js';
import { csvRows, jsonRows, type RowWriter, tableRows } from './rows.js';

/** Parts of the program that the command uses. */
export type QueryCommandHost = Pick<CommandHost, 'finishLeftovers' | 'askState'>;

const DEFAULT_TIMEOUT_MS = 5 * 60_000;
/** The most rows of a table without `--limit`; they are buffered until the column widths are known. */
const DEFAULT_TABLE_ROWS = 1_000;
/** The longest cell of a table, in characters. */
const MAX_CELL_CHARS = 80;
const MEMORY_MEGABYTES = 1_024;
const THREADS = 4;

/**
 * Runs `run-bridge query`. It reads files, and the ids of runs from the state, so a bridge may be running on the data folder; records that a killed `exec` left there are imported first.
 * @throws CliError, ConfigurationError
 */
export async function runQuery(invocation: Invocation, host: QueryCommandHost): Promise<ExitCode> {
  const { context, switches, flags } = invocation;
  const { stdout, stderr, stop } = context;
  const parquet = flags.output === undefined ? null : resolve(context.workingDir, flags.output);
  const kinds = [switches.has('json'), switches.has('csv'), parquet !== null].filter(Boolean).length;
  if (kinds > 1) throw new CliError(EXIT.usage, '--json, --csv or --output, not two of them');
  const isTable = kinds === 0;
  const limits: QueryLimits = {
    timeoutMs: timeoutOf(flags.timeout),
    maxRows: limitOf(flags.limit) ?? (isTable ? DEFAULT_TABLE_ROWS : null),
    maxResultBytes: null,
    memoryMegabytes: MEMORY_MEGABYTES,
    threads: THREADS,
  };
  const configuration = await readConfiguration(invocation);
  const folder = configuration['data-dir'];
  refuseShared(configuration, 'ask any of the processes with POST /api/run-bridge/v1/query');
  await host.finishLeftovers(configuration, context);
  if (!existsSync(join(folder, 'runs'))) {
    throw new CliError(EXIT.failed, `no run is in ${folder}; set the folder with --data-dir`);
  }
  const sql = await sqlOf(invocation);
  let leftOutCount = 0;
  const unnamed = (await host.askState(configuration, context.clock, ({ traces }) => traces.listUnnamed())) ?? [];
  const files = async () => {
    const listed = await listQueryFiles(folder, await listTraces(folder), { unnamed });
    leftOutCount = listed.leftOutCount;
    return listed;
  };
  const engine = new QueryEngine({ clock: context.clock, stopping: stop });
  const writer: RowWriter = switches.has('json')
    ? jsonRows()
    : switches.has('csv')
      ? csvRows()
      : tableRows(MAX_CELL_CHARS);
  const write = async (output: string) => {
    if (output !== '' && !stdout.write(output)) await once(stdout, 'drain', { signal: stop });
  };
  // Renamed when it is complete.
  const parquetPath = parquet && `${parquet}.${context.pid}.part`;
  try {
    for await (const answer of engine.run({ sql, files, limits, parquetPath }, stop)) {
      if (answer.type === 'columns') await write(writer.columns(answer.columns));
      else if (answer.type === 'rows') await write(writer.rows(answer.rows));
      else if (parquet === null || parquetPath === null) await write(writer.end());
      else await rename(parquetPath, parquet);
      if (answer.type === 'end' && answer.isTruncated) {
        stderr.write(`run-bridge: there are more than ${limits.maxRows} rows; set their number with --limit\n`);
      }
    }
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    throw new CliError(EXIT.failed, error.message, { cause: error });
  } finally {
    if (parquetPath !== null) await rm(parquetPath, { force: true });
  }
  if (leftOutCount > 0) {
    stderr.write(
      `run-bridge: the query covers the ${MAX_QUERY_RUNS} runs written to last; ${leftOutCount} were left out\n`,
    );
  }
  return EXIT.ok;
}

async function sqlOf({ context, operands }: Invocation): Promise<string> {
  const [operand] = operands;
  if (operand !== undefined && operand !== '-') return operand;
  if (operand === undefined && context.isStdinTerminal) {
    throw new CliError(EXIT.usage, 'no SQL given; for example: run-bridge query "SELECT * FROM runs"');
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
