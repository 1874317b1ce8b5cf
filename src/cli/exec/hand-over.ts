import type { Delivery } from '../../record/record-consumer.js';
import { askBridge } from '../../source/ask-bridge.js';
import { HttpExecutionBook } from '../../source/http-execution-book.js';
import { Spool } from '../../source/spool.js';
import { HttpConsumer } from '../http-consumer.js';
import { otlpReading } from '../otlp-reading.js';
import type { ExecTarget } from './exec-target.js';
import type { TargetChoice } from './target-choice.js';
import { unservedDestinations } from './unserved-destinations.js';

/** Hands over to a bridge that runs, and takes along what earlier commands could not hand over to the same `--to`. */
export async function handOverTo(
  baseUrl: string,
  { context, configuration, to, logger, giveUp, onTrouble }: TargetChoice,
): Promise<ExecTarget> {
  const { clock, pid } = context;
  const patience = { maxWaitMs: Number.POSITIVE_INFINITY, onWaiting: onTrouble, onGoingOn() {} };
  const consumer = new HttpConsumer(baseUrl, clock, giveUp, patience);
  const book = new HttpExecutionBook(baseUrl, { clock, signal: giveUp });
  const spooled = new HttpConsumer(baseUrl, clock, giveUp, { ...patience, onWaiting() {} });
  const spool = new Spool(configuration['data-dir'], to ?? null, {
    ...{ consumer: spooled, book, otlp: otlpReading, settle: () => spooled.finish(), clock, logger, pid },
  });
  // Without `--to` the bridge that has the folder takes it in itself.
  if (to !== undefined) await spool.start();
  let isUsed = false;
  return {
    consumer: {
      consume(delivery: Delivery) {
        isUsed = true;
        return consumer.consume(delivery);
      },
    },
    book,
    where: baseUrl,
    async finish() {
      const bridge = isUsed ? await askBridge(baseUrl) : undefined;
      return bridge === undefined ? null : unservedDestinations(configuration, bridge, to !== undefined);
    },
    settle: () => consumer.finish(),
    async close() {
      await spool.shutdown();
      book.close();
    },
  };
}
