import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';

/** Items of one signal, in order, to be sent together. */
export type ItemBatch =
  | { readonly signal: 'traces'; readonly items: readonly ReadableSpan[] }
  | { readonly signal: 'logs'; readonly items: readonly ReadableLogRecord[] };
