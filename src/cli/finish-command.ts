import type { CliCommand } from './command-line.js';

/** `run-bridge finish RUN` */
export const finishCommand: CliCommand = {
  name: 'finish',
  operands: '[RUN]',
  summary: 'finish a run that was made of several exec commands with one --run-id (default: $RUN_BRIDGE_RUN_ID)',
  settings: ['data-dir', 'database-url'],
  flags: [['--to <URL>', 'the bridge that the commands handed over to (default: the data folder, or who holds it)']],
  examples: [
    ['run-bridge finish "night $(date -I)"', 'no more steps come: the run is over when those under way are'],
    ['run-bridge finish 4711 --to http://bridge:4380', 'at a bridge elsewhere'],
  ],
  async run(invocation) {
    const { finishRun } = await import('./finish-run.js');
    return finishRun(invocation);
  },
};
