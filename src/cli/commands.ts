import { availableParallelism } from 'node:os';
import { SETTING_KEYS } from '../config/settings.js';
import { heapGrowth } from '../core/guard.js';
import { alignedRows, harmlessJson } from '../core/text.js';
import { PERMISSION_SETS } from '../storage/permission-set.js';
import type { CliCommand } from './command-line.js';
import { EXIT } from './exit-code.js';
import { packageVersion } from './package-info.js';
import { reportReading } from './report-reading.js';

/** `run-bridge backup DEST`: copies the data folder. */
export const backupCommand: CliCommand = {
  name: 'backup',
  operands: '<DEST>',
  summary: 'copy the data folder, state and runs, to a new folder; a server may keep running',
  settings: ['data-dir'],
  flags: [],
  examples: [['run-bridge backup /backups/$(date -I)', 'restore puts it back']],
  async run(invocation) {
    const { backUp } = await import('./backup.js');
    return backUp(invocation);
  },
};

/** `run-bridge restore BACKUP`: makes a data folder of what `backup` wrote. */
export const restoreCommand: CliCommand = {
  name: 'restore',
  operands: '<BACKUP>',
  summary: 'fill an empty or new data folder from a backup, which stays as it is',
  settings: ['data-dir', 'database-url'],
  flags: [],
  examples: [['run-bridge restore /backups/2026-11-20 --data-dir ./data', 'then: run-bridge serve --data-dir ./data']],
  async run(invocation) {
    const { restore } = await import('./backup.js');
    return restore(invocation);
  },
};

/** `run-bridge completion SHELL` @param list all commands */
export function completionCommand(list: () => readonly CliCommand[]): CliCommand {
  return {
    name: 'completion',
    operands: '<bash|zsh|fish>',
    summary: 'print a script by which a shell completes commands, options and their values',
    settings: [],
    flags: [],
    examples: [
      ['source <(run-bridge completion bash)', 'in ~/.bashrc; zsh in the same way'],
      ['run-bridge completion fish', 'for ~/.config/fish/completions/run-bridge.fish'],
    ],
    async run({ context, operands: [shell = ''] }) {
      const { completionScript } = await import('./completion.js');
      context.stdout.write(completionScript(shell, list()));
      return EXIT.ok;
    },
  };
}

/** `run-bridge config`: each value and its origin. */
export const configCommand: CliCommand = {
  name: 'config',
  operands: '',
  summary: 'print the configuration in force and where each value came from; secrets are masked',
  settings: SETTING_KEYS,
  flags: [['--json', 'print JSON']],
  examples: [
    ['run-bridge config', 'check a configuration before it is used'],
    ['run-bridge config --config prod.yaml --json', 'the same as JSON'],
  ],
  async run(invocation) {
    const { resolveWithDestinations } = await import('./resolve-for-command.js');
    const { stdout, stderr } = invocation.context;
    const { rows, file, warnings } = await resolveWithDestinations(invocation);
    for (const warning of warnings) stderr.write(`run-bridge: ${warning}\n`);
    if (invocation.switches.has('json')) {
      const settings = Object.fromEntries(rows.map(({ name, value, origin }) => [name, { value, origin }]));
      stdout.write(`${harmlessJson(JSON.stringify({ file, settings }, null, 2))}\n`);
      return EXIT.ok;
    }
    stdout.write(`# configuration file: ${file ?? 'none'}\n`);
    for (const line of alignedRows(rows.map(({ name, value, origin }) => [name, value, origin])))
      stdout.write(`${line}\n`);
    return EXIT.ok;
  },
};

/** More would only wait for the disk, and each holds a row group. */
const MAX_THREADS = 4;

/** `run-bridge convert IN OUT` */
export const convertCommand: CliCommand = {
  name: 'convert',
  operands: '<IN> <OUT>',
  summary: 'convert a file between JSONL, Parquet and OTLP JSON lines, by the endings of their names',
  settings: [],
  flags: [],
  examples: [
    ['run-bridge convert telemetry.jsonl telemetry.parquet', "the engine's JSONL as Parquet"],
    ['run-bridge convert telemetry.parquet telemetry.jsonl', 'and back'],
    ['run-bridge convert telemetry.jsonl telemetry.otlp.jsonl', "as OTLP, to read with the Collector's tools"],
  ],
  async run({ context, operands: [inPath = '', outPath = ''] }) {
    const [{ convertFile }, { otlpReading }, { ProgressLine }] = await Promise.all([
      import('../files/feature.js'),
      import('./otlp-reading.js'),
      import('./progress-line.js'),
    ]);
    const progress = new ProgressLine(context);
    const result = await convertFile(inPath, outPath, {
      otlp: otlpReading([]),
      signal: context.stop,
      threads: Math.min(MAX_THREADS, availableParallelism()),
      onProgress: (at) => progress.show(at),
    }).finally(() => progress.end());
    return reportReading(result, { done: `wrote ${outPath}` }, context.stderr) ? EXIT.ok : EXIT.unreadable;
  },
};

/** `run-bridge delete RUN`: a run with all its data. */
export const deleteCommand: CliCommand = {
  name: 'delete',
  operands: '<RUN>',
  summary: 'delete a run with all its data; a bridge that has the data folder does it, if one is running',
  settings: [
    'data-dir',
    'database-url',
    'processes',
    'artifacts',
    'artifacts-endpoint',
    'artifacts-region',
    'artifacts-path-style',
    'log-level',
    'log-format',
  ],
  flags: [
    ['--yes', 'do not ask'],
    ['--with-shared', 'also delete runs that share its trace: a trace is removed as a whole'],
    ['--account <ID>', 'the account that it belongs to (default: the first)'],
    ['--to <URL>', 'the bridge that has it (default: the data folder, or the bridge that uses it)'],
  ],
  examples: [
    ['run-bridge delete 1042 --yes', 'by its number; without --yes it asks first'],
    [
      'run-bridge delete 1042 --yes --to http://bridge:4380',
      'at a bridge elsewhere, with RUN_BRIDGE_TOKEN of an admin',
    ],
  ],
  run: async (invocation) => {
    const { deleteRun } = await import('./delete-run.js');
    return deleteRun(invocation);
  },
};

/** `run-bridge demo`: a real run, sent as the engine sends it. */
export const demoCommand: CliCommand = {
  name: 'demo',
  operands: '',
  summary: 'replay a real run of dbt 2 that comes with the program and show what becomes of it',
  settings: ['data-dir', 'http', 'web'],
  flags: [['--to <URL>', 'send it to a bridge that is running, instead of starting one']],
  examples: [
    ['run-bridge demo', 'start a bridge in a temporary folder and send it the run'],
    ['run-bridge demo --data-dir ./data', 'the same, with the files in ./data'],
    ['run-bridge demo --to http://127.0.0.1:4318', 'send the run to a bridge that is running'],
  ],
  async run(invocation) {
    const { replayDemo } = await import('./replay-demo.js');
    return replayDemo(invocation);
  },
};

/** `run-bridge export RUN`: sends a run to destinations again. */
export const exportCommand: CliCommand = {
  name: 'export',
  operands: '<RUN>',
  summary: 'send a run to its destinations again, from its first record; a bridge that has the data folder does it',
  settings: ['data-dir', 'database-url', 'event-hold', 'redaction', 'log-level', 'log-format'],
  flags: [
    ['--to <NAME>', 'the destination, by its name in the configuration (default: all)'],
    ['--account <ID>', 'the account that the run belongs to (default: the first)'],
  ],
  examples: [
    ['run-bridge export 1042', 'by its number; to all destinations'],
    ['run-bridge export 1042 --to tempo', 'to one that lost it, or was configured after it'],
  ],
  run: async (invocation) => {
    const { exportRun } = await import('./export-run.js');
    return exportRun(invocation);
  },
};

/** `run-bridge finish RUN` */
export const finishCommand: CliCommand = {
  name: 'finish',
  operands: '[RUN]',
  summary: 'finish a run that was made of several exec commands with one --run-id (default: $RUN_BRIDGE_RUN_ID)',
  settings: ['data-dir', 'database-url'],
  flags: [
    ['--to <URL>', 'the bridge that the commands reported to (default: the data folder, or the bridge that uses it)'],
  ],
  examples: [
    ['run-bridge finish "night $(date -I)"', 'no more steps come: the run is over when those under way are'],
    ['run-bridge finish 4711 --to http://bridge:4380', 'at a bridge elsewhere'],
  ],
  async run(invocation) {
    const { finishRun } = await import('./finish-run.js');
    return finishRun(invocation);
  },
};

/** `run-bridge follow PATH…` */
export const followCommand: CliCommand = {
  name: 'follow',
  operands: '<PATH...>',
  summary: 'read JSONL files while the engine writes them, until SIGINT or SIGTERM; the next start resumes there',
  settings: [
    'data-dir',
    'database-url',
    'parquet',
    'jsonl',
    'durability',
    'max-disk',
    'disk-reserve',
    'invocation-quiet',
    'invocation-silence',
    'event-hold',
    'max-backlog-age',
    'redaction',
    'log-level',
    'log-format',
  ],
  flags: [['--to <URL>', 'send the records to a bridge that is running, instead of writing them here']],
  examples: [
    ['run-bridge follow logs/otel.jsonl', 'a file, which need not exist yet'],
    ["run-bridge follow 'projects/*/logs' extra.jsonl", 'files of folders, also those that come later'],
    ['run-bridge follow logs --to http://bridge:4318', 'hand the records to a bridge elsewhere'],
  ],
  async run(invocation) {
    const { follow } = await import('./follow.js');
    return follow(invocation);
  },
};

/** `run-bridge import PATH…` */
export const importCommand: CliCommand = {
  name: 'import',
  operands: '<PATH...>',
  summary:
    'take JSONL, Parquet and OTLP JSON files, also .gz and .zst, as if their records were received now; folders and patterns stand for files; a bridge that has the data folder gets them',
  settings: [
    'data-dir',
    'database-url',
    'parquet',
    'jsonl',
    'durability',
    'max-disk',
    'disk-reserve',
    'engine-names',
    'redaction',
    'log-level',
    'log-format',
  ],
  flags: [
    ['--to <URL>', 'send the records to a bridge that is running, instead of writing them here'],
    [
      '--notify',
      'let the bridge that takes them notify of runs that had ended before, too (default: of none of these)',
    ],
  ],
  examples: [
    ['run-bridge import logs/otel.jsonl', "the engine's own file: JSONL, Parquet and exports are made of it"],
    [
      "run-bridge import old/ '*.jsonl.zst'",
      'folders, patterns, compressed files; records that are stored already are skipped',
    ],
    ['run-bridge import otel.jsonl --to http://bridge:4318', 'hand the records to a bridge elsewhere'],
  ],
  async run(invocation) {
    const { importFiles } = await import('./import-files.js');
    return importFiles(invocation);
  },
};

/** `run-bridge open [RUN]`: the pages in a browser, signed in. */
export const openCommand: CliCommand = {
  name: 'open',
  operands: '[RUN]',
  summary:
    'open the pages of the bridge that serves the data folder in a browser, signed in by a link that is good once',
  settings: ['data-dir', 'database-url'],
  flags: [['--print', 'only print the link, for a browser elsewhere']],
  examples: [
    ['run-bridge open', 'all runs'],
    ['run-bridge open 1042', 'one run, by its number, or a trace or invocation id'],
    ['run-bridge open --print', 'over SSH: forward the port, and open the link at home'],
  ],
  async run(invocation) {
    const { openInBrowser } = await import('./open-in-browser.js');
    return openInBrowser(invocation);
  },
};

/** `run-bridge pipe` */
export const pipeCommand: CliCommand = {
  name: 'pipe',
  operands: '',
  summary: 'take records from standard input and pass all other lines on to standard output',
  settings: [
    'data-dir',
    'database-url',
    'parquet',
    'durability',
    'max-disk',
    'disk-reserve',
    'redaction',
    'log-level',
    'log-format',
  ],
  flags: [
    ['--tee', 'pass the records on, too'],
    ['--to <URL>', 'send the records to a bridge that is running, instead of writing them here'],
  ],
  examples: [
    ['dbt build --log-format otel | run-bridge pipe', 'keep a run as it comes'],
    ['dbt build --log-format otel | run-bridge pipe --tee > otel.jsonl', 'and have its JSONL, too'],
  ],
  async run(invocation) {
    const { pipe } = await import('./pipe.js');
    return pipe(invocation);
  },
};

/** `run-bridge rebuild`: creates the state from the data folder. */
export const rebuildCommand: CliCommand = {
  name: 'rebuild',
  operands: '',
  summary: 'make the state anew from the data folder, where state.db is lost or damaged; the old one is kept beside it',
  settings: ['data-dir', 'database-url', 'log-level', 'log-format'],
  flags: [],
  examples: [['run-bridge rebuild --data-dir ./data', 'no server may be running on the folder']],
  run: async (invocation) => {
    const { rebuild } = await import('./rebuild.js');
    return rebuild(invocation);
  },
};

/** `run-bridge retain`: removes now what is older, or more, than the configuration keeps. */
export const retainCommand: CliCommand = {
  name: 'retain',
  operands: '',
  summary:
    'remove runs, artifacts and deliveries of webhooks that are older, or more, than the retain- settings keep; serve does so each hour',
  settings: [
    'data-dir',
    'database-url',
    'processes',
    'retain-telemetry-age',
    'retain-telemetry-size',
    'retain-artifacts-age',
    'retain-artifacts-size',
    'retain-deliveries-age',
    'retain-deliveries-size',
    'max-backlog-age',
    'artifacts',
    'artifacts-endpoint',
    'artifacts-region',
    'artifacts-path-style',
    'log-level',
    'log-format',
  ],
  flags: [['--dry-run', 'only list what would be removed; also while a server is running on the data folder']],
  examples: [
    ['run-bridge retain --dry-run --retain-telemetry-age 90d', 'what would go if runs were kept for 90 days'],
    ['run-bridge retain', 'remove it now, if no server is running on the folder'],
  ],
  run: async (invocation) => {
    const { retain } = await import('./retain.js');
    return retain(invocation);
  },
};

/** `run-bridge serve`: receive, keep and pass on until SIGTERM or SIGINT. */
export const serveCommand: CliCommand = {
  name: 'serve',
  operands: '',
  summary: 'receive telemetry over OTLP, write it as JSONL and Parquet, and pass it on',
  settings: SETTING_KEYS,
  flags: [],
  examples: [
    ['run-bridge serve', 'listen on 127.0.0.1:4318, write to ~/.local/share/run-bridge'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:14318 run-bridge serve', 'and export to an OTLP endpoint'],
    ['run-bridge serve --http 0 --data-dir ./data', 'any free port, another folder'],
    ['run-bridge serve --jsonl - | jq .event_type', 'and stream every record'],
    [
      'run-bridge serve --role build --config several.yaml',
      'one of several processes: build runs, and let others answer',
    ],
  ],
  async run(invocation) {
    heapGrowth.hold();
    try {
      const { serve } = await import('./serve.js');
      return await serve(invocation);
    } finally {
      heapGrowth.release();
    }
  },
};

/** `run-bridge token create|list|revoke` */
export const tokenCommand: CliCommand = {
  name: 'token',
  operands: '<create|list|revoke> [ID]',
  summary: 'make, list and revoke the tokens of the API and of OTLP; a server that runs need not be stopped',
  settings: ['data-dir', 'database-url'],
  values: { permission: PERMISSION_SETS },
  flags: [
    ['--name <NAME>', 'create: what it is for, in your words'],
    ['--permission <SET>', `create: what it may do: ${PERMISSION_SETS.join(', ')}`],
    ['--expires <TIME>', 'create: how long it is good, for example 12h or 90d (default: until it is revoked)'],
    ['--user <NAME>', 'create: the user of the token (default: none, a service token)'],
    ['--account <ID>', 'create: the account that it belongs to (default: the first)'],
    ['--new-account <NAME>', 'create: also create an account, for the token and runs of its own'],
  ],
  examples: [
    [
      'run-bridge token create --name airflow --permission admin --expires 90d',
      'prints the token; it is shown only once',
    ],
    ['run-bridge token create --name ci --permission developer --new-account finance', 'for runs of its own'],
    ['run-bridge token list', 'list all tokens, without their values'],
    ['run-bridge token revoke 1002', 'refused within five seconds'],
  ],
  async run(invocation) {
    const { runTokenCommand } = await import('./token/run-token-command.js');
    return runTokenCommand(invocation);
  },
};

/** `run-bridge version` */
export const versionCommand: CliCommand = {
  name: 'version',
  operands: '',
  summary: 'print the versions of run-bridge and of Node',
  settings: [],
  flags: [],
  examples: [['run-bridge version', 'for a bug report']],
  async run({ context }) {
    context.stdout.write(`run-bridge ${packageVersion(context.packageDir)} (Node ${context.nodeVersion})\n`);
    return EXIT.ok;
  },
};
