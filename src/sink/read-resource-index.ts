import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../component/error-code.js';
import { ResourceIndex } from './resource-index.js';
import { RESOURCES_FILE } from './trace-log.js';

/** Whose the records of a trace's log are, as its folder says; nobody's where it says nothing. */
export async function readResourceIndex(folder: string): Promise<ResourceIndex> {
  try {
    return ResourceIndex.parse(await readFile(join(folder, RESOURCES_FILE), 'utf8'));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return new ResourceIndex();
    throw error;
  }
}
