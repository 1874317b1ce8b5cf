import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CliCommand } from '../cli/command.js';
import type { Configuration } from '../config/configuration.js';
import type { Clock } from '../core/clock.js';
import { lazy } from '../core/lazy.js';
import type { Feature } from '../feature.js';
import type { State } from '../storage/state.js';
import type { QueryCommandHost } from './command.js';
import type { SharedFiles } from './files.js';
import type { QueryRouterDeps } from './routes.js';

// The door of queries: other folders import only this file. It loads little; the first query loads DuckDB.

/** Parts of the program that queries use. */
export interface QueryHost {
  readonly state: Pick<State, 'traces'>;
  /** Files of runs that several processes share; `undefined` if runs are in the data folder. */
  readonly shared: SharedFiles | undefined;
  readonly clock: Clock;
  /** The program's version. */
  readonly version: string;
  /** Aborts when the program stops. */
  readonly stopping: AbortSignal;
}

/** Answers SQL over the runs of an account, over the API and on a page. */
export function createQueries(config: Pick<Configuration, 'data-dir'>, host: QueryHost): Feature {
  const routing = lazy(async () => {
    const { QueryEngine } = await import('./engine.js');
    const { fetchQueryFiles, listQueryFiles } = await import('./files.js');
    const { state, shared, clock, stopping } = host;
    const deps: QueryRouterDeps = {
      traces: state.traces,
      queries: new QueryEngine({ clock, stopping }),
      listFiles: (traceIds, unnamed) =>
        shared === undefined
          ? listQueryFiles(config['data-dir'], traceIds, { unnamed })
          : fetchQueryFiles(shared, traceIds, unnamed),
    };
    return deps;
  });
  const answersFolder = lazy(async () => {
    const folder = join(config['data-dir'], 'answers');
    // A killed process may have left files.
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return folder;
  });
  return {
    components: [],
    api: async () => [(await import('./routes.js')).queryRouter(await routing.get())],
    apiPaths: async () => (await import('./routes.js')).QUERY_PATHS,
    pages: async () =>
      (await import('./pages.js')).queryPages({
        ...(await routing.get()),
        answersFolder: answersFolder.get,
        version: host.version,
      }),
  };
}

/** The command `run-bridge query "SELECT …"`. */
export function queryCommand(host: QueryCommandHost): CliCommand {
  return {
    name: 'query',
    operands: '[SQL]',
    summary:
      'ask the runs with SQL (DuckDB, read-only); the views are runs, steps, nodes, tests, queries and records, docs/reference/views.md has their columns; without SQL, or with -, it is read from standard input',
    settings: ['data-dir', 'database-url'],
    flags: [
      ['--json', 'print an array of objects'],
      ['--csv', 'print comma-separated values'],
      ['--output <FILE>', 'write the rows to this file, as Parquet'],
      ['--limit <N>', 'print at most this many rows (default: 1000 as a table, else all)'],
      ['--timeout <DURATION>', 'give up after this time (default: 5m)'],
    ],
    examples: [
      [
        'run-bridge query "SELECT unique_id, duration_ms FROM nodes ORDER BY 2 DESC NULLS LAST LIMIT 10"',
        'the slowest nodes',
      ],
      ['run-bridge query "DESCRIBE nodes"', 'the columns of a view'],
      ['run-bridge query --csv < report.sql > report.csv', 'for a spreadsheet'],
    ],
    async run(invocation) {
      const { runQuery } = await import('./command.js');
      return runQuery(invocation, host);
    },
  };
}
