import type { Clock } from '../../component/clock.js';
import type { ExecTarget } from './exec-target.js';
import { HandOverConsumer } from './hand-over-consumer.js';

/** Hands over to a bridge that runs. */
export function handOverTo(
  baseUrl: string,
  clock: Clock,
  { giveUp, onTrouble }: { giveUp: AbortSignal; onTrouble: (message: string) => void },
): ExecTarget {
  const consumer = new HandOverConsumer(baseUrl, clock, giveUp, onTrouble);
  return {
    consumer,
    book: undefined,
    where: baseUrl,
    async finish() {
      await consumer.finish();
      return null;
    },
    async close() {
      consumer.close();
    },
  };
}
