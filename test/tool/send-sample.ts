import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sampleFolder } from '../fake/sample-run.js';
import { type Renaming, renamed } from './renamed.js';

/**
 * Posts a sample's OTLP bodies in the order in which the engine sent them.
 * @param url base address of an OTLP service
 * @param to what the engine is called there; default: as it was
 * @throws Error when one is not answered 200
 */
export async function sendSample(url: string, run: string, to?: Renaming): Promise<void> {
  const folder = join(sampleFolder(run), 'otlp');
  for (const file of readdirSync(folder).sort()) {
    const signal = file.includes('traces') ? 'traces' : 'logs';
    const body = readFileSync(join(folder, file));
    const response = await fetch(`${url}/v1/${signal}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-protobuf' },
      body: to === undefined ? body : Buffer.from(renamed(signal, body, to)),
    });
    if (response.status !== 200) throw new Error(`${run}/${file} was answered ${response.status}, not 200`);
  }
}
