import type { Signal } from '../record/record-batch.js';
import type { ItemBatch } from './item-batch.js';
import type { MappedItem } from './mapped-item.js';

type SpanOf = Extract<MappedItem, { signal: 'traces' }>['span'];
type LogOf = Extract<MappedItem, { signal: 'logs' }>['log'];

/** Items of one signal as a destination takes them. */
export function toItemBatch(signal: Signal, mapped: readonly MappedItem[]): ItemBatch {
  if (signal === 'traces') {
    const items: SpanOf[] = [];
    for (const item of mapped) if (item.signal === 'traces') items.push(item.span);
    return { signal, items };
  }
  const items: LogOf[] = [];
  for (const item of mapped) if (item.signal === 'logs') items.push(item.log);
  return { signal, items };
}
