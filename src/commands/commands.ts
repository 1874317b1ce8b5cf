import { type CliCommand, EXIT } from '../cli/command.js';
import { LOG_SETTINGS, SETTING_KEYS, STATE_SETTINGS } from '../config/settings.js';
import { heapGrowth } from '../core/guard.js';
import { packageVersion } from '../core/package-file.js';
import { alignedRows, harmlessJson } from '../core/text.js';
import { PERMISSION_SETS } from '../storage/state-tables.js';

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
  settings: STATE_SETTINGS,
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
    const { resolveWithDestinations, sayWarnings } = await import('../cli/command-configuration.js');
    const { stdout } = invocation.context;
    const resolved = await resolveWithDestinations(invocation);
    sayWarnings(resolved, invocation);
    const { rows, file } = resolved;
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

/** `run-bridge demo`: a real run, sent as the engine sends it. */
export const demoCommand: CliCommand = {
  name: 'demo',
  operands: '',
  summary: 'replay a real run of dbt 2 that comes with the program and show what becomes of it',
  settings: ['data-dir', 'http', 'web'],
  flags: [
    ['--to <URL>', 'send it to a bridge that is running, instead of starting one'],
    ['--serve', "go on until Ctrl+C, with the run's page, and print a link that opens it"],
  ],
  examples: [
    ['run-bridge demo', 'start a bridge in a temporary folder and send it the run'],
    ['run-bridge demo --serve', 'the same, and then look at its page'],
    ['run-bridge demo --data-dir ./data', 'the same, with the files in ./data'],
    ['run-bridge demo --to http://127.0.0.1:4318', 'send the run to a bridge that is running'],
  ],
  async run(invocation) {
    const { replayDemo } = await import('./replay-demo.js');
    return replayDemo(invocation);
  },
};

/** `run-bridge finish RUN` */
export const finishCommand: CliCommand = {
  name: 'finish',
  operands: '[RUN]',
  summary: 'finish a run that was made of several exec commands with one --run-id (default: $RUN_BRIDGE_RUN_ID)',
  settings: STATE_SETTINGS,
  flags: [
    [
      '--to <URL>',
      'the bridge that the commands reported to (default: $RUN_BRIDGE_TO, else the data folder, or the bridge that uses it)',
    ],
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

/** `run-bridge open [RUN]`: the pages in a browser, signed in. */
export const openCommand: CliCommand = {
  name: 'open',
  operands: '[RUN]',
  summary:
    'open the pages of the bridge that serves the data folder in a browser, signed in by a link that is good once',
  settings: STATE_SETTINGS,
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

/** `run-bridge rebuild`: creates the state from the data folder. */
export const rebuildCommand: CliCommand = {
  name: 'rebuild',
  operands: '',
  summary: 'make the state anew from the data folder, where state.db is lost or damaged; the old one is kept beside it',
  settings: [...STATE_SETTINGS, ...LOG_SETTINGS],
  flags: [],
  examples: [['run-bridge rebuild --data-dir ./data', 'no server may be running on the folder']],
  run: async (invocation) => {
    const { rebuild } = await import('./rebuild.js');
    return rebuild(invocation);
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
  settings: STATE_SETTINGS,
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
    const { runTokenCommand } = await import('./token.js');
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
