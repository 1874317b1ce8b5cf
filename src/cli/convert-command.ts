import { availableParallelism } from 'node:os';
import type { CliCommand } from './command-line.js';
import { EXIT } from './exit-code.js';
import { reportReading } from './report-reading.js';

/** More would only wait for the disk, and each holds a row group. */
const MAX_THREADS = 4;

/** `run-bridge convert IN OUT` */
export const convertCommand: CliCommand = {
  name: 'convert',
  operands: '<IN> <OUT>',
  summary: 'convert a file between JSONL, Parquet and OTLP JSON lines, told by the names’ endings',
  settings: [],
  flags: [],
  examples: [
    ['run-bridge convert telemetry.jsonl telemetry.parquet', "the engine's JSONL as Parquet"],
    ['run-bridge convert telemetry.parquet telemetry.jsonl', 'and back'],
    ['run-bridge convert telemetry.jsonl telemetry.otlp.jsonl', "as OTLP, to read with the Collector's tools"],
  ],
  async run({ context, operands: [inPath = '', outPath = ''] }) {
    const [{ convertFile }, { otlpReading }, { ProgressLine }] = await Promise.all([
      import('../files/convert-file.js'),
      import('./otlp-reading.js'),
      import('./progress-line.js'),
    ]);
    const progress = new ProgressLine(context);
    const result = await convertFile(inPath, outPath, {
      otlp: otlpReading(),
      signal: context.stop,
      threads: Math.min(MAX_THREADS, availableParallelism()),
      onProgress: (at) => progress.show(at),
    }).finally(() => progress.end());
    return reportReading(result, { done: `wrote ${outPath}` }, context.stderr) ? EXIT.ok : EXIT.unreadable;
  },
};
