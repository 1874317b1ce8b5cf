import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';

/**
 * One thing to export, and the record that caused it. Items of one signal come in the order of their anchors, so that a
 * cursor is one offset: everything anchored before it has been sent.
 */
export type MappedItem =
  | { readonly signal: 'traces'; readonly anchorOffset: number; readonly span: ReadableSpan }
  | { readonly signal: 'logs'; readonly anchorOffset: number; readonly log: ReadableLogRecord };
