import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sampleFolder } from '../fake/sample-run.js';

/**
 * Posts a sample's OTLP bodies in the order in which the engine sent them.
 * @param url base address of an OTLP service
 * @throws Error when one is not answered 200
 */
export async function sendSample(url: string, run: string): Promise<void> {
  const folder = join(sampleFolder(run), 'otlp');
  for (const file of readdirSync(folder).sort()) {
    const response = await fetch(`${url}/v1/${file.includes('traces') ? 'traces' : 'logs'}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-protobuf' },
      body: readFileSync(join(folder, file)),
    });
    if (response.status !== 200) throw new Error(`${run}/${file} was answered ${response.status}, not 200`);
  }
}
