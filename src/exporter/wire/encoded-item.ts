import type { ExportGroup } from './export-group.js';

/**
 * A span or log record in OTLP's protobuf, as it stands in a ScopeSpans or ScopeLogs: tag, length, message. Many share a
 * block of bytes, so that neighbours are copied into a request together.
 */
export interface EncodedItem {
  readonly block: Buffer;
  readonly start: number;
  readonly end: number;
  readonly group: ExportGroup;
}

/** Whether an item is in its final bytes already. */
export function isEncoded(item: object): item is EncodedItem {
  return 'block' in item && 'group' in item;
}

/** The message in an item, without its tag and length. */
export function messageOf({ block, start, end }: EncodedItem): Buffer {
  let at = start + 1;
  while ((block[at] ?? 0) >= 0x80) at++;
  return block.subarray(at + 1, end);
}
