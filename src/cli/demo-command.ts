import type { CliCommand } from './command-line.js';

/** `run-bridge demo`: a real run, sent as the engine sends it. */
export const demoCommand: CliCommand = {
  name: 'demo',
  operands: '',
  summary: 'replay a real run that comes with the program and show what becomes of it',
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
