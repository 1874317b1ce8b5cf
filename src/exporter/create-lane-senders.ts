import type { Signal } from '../record/record-batch.js';
import { ExportLane } from './export-lane.js';
import type { ExportWorkerDeps } from './export-worker-deps.js';
import type { ExportWorkerOptions } from './export-worker-options.js';
import { LaneSender, type LaneSenderDeps } from './lane-sender.js';
import { LaneSenders } from './lane-senders.js';

/** What senders tell the worker. */
export interface LaneSendersHost extends Pick<LaneSenderDeps, 'onAnswered' | 'onGivenBack' | 'onProgress'> {
  /** A lane's wait is over. */
  readonly onReady: () => void;
}

/** The senders of a destination's signals. */
export function createLaneSenders(
  options: ExportWorkerOptions,
  deps: ExportWorkerDeps,
  stop: AbortSignal,
  host: LaneSendersHost,
): LaneSenders {
  const { destination, clock, logger, retryPolicy: policy } = deps;
  const { maxBatchItems } = options;
  const maxInFlight = Math.min(options.maxInFlight, destination.maxInFlight ?? options.maxInFlight);
  const create = (signal: Signal) => {
    const isAsked = destination.signals.includes(signal);
    const lane = new ExportLane(signal, isAsked, destination.name, { clock, logger, policy }, host.onReady);
    const senderDeps = { destination, clock, retryPolicy: deps.requestRetryPolicy, ...host };
    return new LaneSender(lane, { maxBatchItems, maxInFlight }, senderDeps, stop);
  };
  return new LaneSenders(create('traces'), create('logs'), options.maxWaitingItems);
}
