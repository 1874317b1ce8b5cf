import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { endingDocument } from '../run/ending-document.js';
import { stepStartDocument } from '../run/execution-api.js';
import type { SpoolEntry, SpoolEntryDocument } from './spool-entry.js';
import { ENTRY_FILE } from './spool-folder.js';

/** Writes an entry into its command's folder, in place of an earlier one as a whole. @throws what the file system throws. */
export function writeSpoolEntry(folder: string, entry: SpoolEntry): void {
  const { start, to, file, resourceAttributes, end } = entry;
  const document: SpoolEntryDocument = {
    step_id: start.stepId,
    step: stepStartDocument(start),
    to,
    file: file === null ? null : { path: file.path, from_offset: file.fromOffset },
    resource_attributes: resourceAttributes,
    end: end === null ? null : { ending: endingDocument(end.ending), ended_unix_ms: end.endedUnixMs },
  };
  const path = join(folder, ENTRY_FILE);
  writeFileSync(`${path}.partial`, `${JSON.stringify(document)}\n`, { mode: 0o600 });
  renameSync(`${path}.partial`, path);
}
