import { SETTING_KEYS } from '../config/settings.js';
import { youngGeneration } from '../core/young-generation.js';
import type { CliCommand } from './command-line.js';

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
  ],
  async run(invocation) {
    youngGeneration.hold();
    try {
      const { serve } = await import('./serve.js');
      return await serve(invocation);
    } finally {
      youngGeneration.release();
    }
  },
};
