import { join } from 'node:path';
import type { Program } from '../app.js';
import type { Configuration } from '../config/configuration.js';
import type { Intake } from './open-intake.js';

/** Where the records of a command go, in one or two lines, in the format of `serve`. */
export function whereLines(
  configuration: Configuration,
  { opened, url }: Pick<Intake<{ readonly program: Program }>, 'opened' | 'url'>,
): readonly string[] {
  const { 'data-dir': dataFolder, parquet, jsonl } = configuration;
  if (opened === undefined) return [`sends to  ${url ?? 'nobody'}`];
  const formats = ['JSONL', ...(parquet ? ['Parquet'] : [])].join(' and ');
  const streamed = jsonl === 'off' ? '' : `, streamed to ${jsonl === '-' ? 'standard output' : jsonl}`;
  const exported = opened.program.destinations.map(([name, where]) => `${name} (${where})`).join(', ');
  return [`writes    ${join(dataFolder, 'runs')} (${formats}${streamed})`, `exports   ${exported || 'nothing'}`];
}
