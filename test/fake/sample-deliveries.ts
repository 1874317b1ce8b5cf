import type { Delivery } from '../../src/record/record-batch.js';
import { decodeBody } from './decode-at-once.js';
import { sampleBodies } from './sample-run.js';

/** A sample's OTLP bodies as the receiver decodes them: into pages. */
export function* sampleDeliveries(run: string): Iterable<Delivery> {
  for (const { signal, body } of sampleBodies(run)) yield decodeBody(signal, body).delivery;
}

/** The same as records, none of it in pages. */
export function* sampleDeliveriesOfRecords(run: string): Iterable<Delivery> {
  for (const { batches, passthrough } of sampleDeliveries(run)) {
    yield { batches: batches.map(({ traceId, resource, records }) => ({ traceId, resource, records })), passthrough };
  }
}
