import type { CliCommand } from './command-line.js';

/** `run-bridge query "SELECT …"` */
export const queryCommand: CliCommand = {
  name: 'query',
  operands: '[SQL]',
  summary:
    'ask the runs with SQL (DuckDB, read-only); the views are runs, steps, nodes, tests, queries and records, docs/see.md has their columns; without SQL, or with -, it is read from standard input',
  settings: ['data-dir', 'database-url'],
  flags: [
    ['--json', 'print an array of objects'],
    ['--csv', 'print comma-separated values'],
    ['--limit <N>', 'print so many rows at most (default: 1000 as a table, else all)'],
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
    const { runQuery } = await import('./query/run-query.js');
    return runQuery(invocation);
  },
};
