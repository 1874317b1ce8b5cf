import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../component/error-code.js';
import { parseTraceId, type TraceId } from '../record/ids.js';

/** The traces that have a folder below `<data>/runs`; none where that is not there yet. */
export async function listTraces(dataFolder: string): Promise<readonly TraceId[]> {
  try {
    return (await readdir(join(dataFolder, 'runs'))).flatMap((name) => parseTraceId(name) ?? []);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
