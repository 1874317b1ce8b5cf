import { join } from 'node:path';
import type { Configuration } from '../config/configuration.js';
import type { Intake } from './open-intake.js';

/** Where the records of a command go, in one or two lines, in the format of `serve`. */
export function whereLines(configuration: Configuration, { app, url }: Intake): readonly string[] {
  const { 'data-dir': dataFolder, parquet, jsonl } = configuration;
  if (app === undefined) return [`sends to  ${url ?? 'nobody'}`];
  const formats = ['JSONL', ...(parquet ? ['Parquet'] : [])].join(' and ');
  const streamed = jsonl === 'off' ? '' : `, streamed to ${jsonl === '-' ? 'standard output' : jsonl}`;
  const exported = app.destinations.map(([name, where]) => `${name} (${where})`).join(', ');
  return [`writes    ${join(dataFolder, 'runs')} (${formats}${streamed})`, `exports   ${exported || 'nothing'}`];
}
