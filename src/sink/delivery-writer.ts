import type { Delivery } from '../record/record-consumer.js';

/** Writes what deliveries bring into one file, which appears under its name when it is closed. */
export interface DeliveryWriter {
  write(delivery: Delivery): Promise<void>;
  /** Completes the file: on disk, under its name. */
  close(): Promise<void>;
  /** Removes what was written; an earlier file of that name stays. */
  abort(): Promise<void>;
}
