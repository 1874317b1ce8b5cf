import type { Delivery } from '../../record/record-batch.js';
import { HttpArtifactSink } from '../../source/artifact/http-artifact-sink.js';
import { askBridge } from '../../source/ask-bridge.js';
import { HttpExecutionBook } from '../../source/http-execution-book.js';
import { Spool } from '../../source/spool.js';
import { bridgeHeaders } from '../bridge-headers.js';
import { HttpConsumer } from '../http-consumer.js';
import { otlpReading } from '../otlp-reading.js';
import type { ExecTarget } from './exec-target.js';
import type { TargetChoice } from './target-choice.js';
import { unservedDestinations } from './unserved-destinations.js';

/**
 * Hands over to a bridge that runs, and takes along what earlier commands could not hand over to the same `--to`.
 * @param hasAnswered whether a run-bridge has answered there already
 */
export async function handOverTo(
  baseUrl: string,
  { context, configuration, to, userEndpoint, logger, giveUp, onTrouble }: TargetChoice,
  hasAnswered: boolean,
): Promise<ExecTarget> {
  const { clock, pid } = context;
  const patience = { maxWaitMs: Number.POSITIVE_INFINITY, onWaiting: onTrouble, onGoingOn() {} };
  const headers = bridgeHeaders(context.environment, baseUrl);
  const isBridge = hasAnswered || undefined;
  const consumer = new HttpConsumer(baseUrl, clock, giveUp, patience, headers, isBridge);
  const book = new HttpExecutionBook(baseUrl, { clock, signal: giveUp, headers });
  const artifacts = new HttpArtifactSink(baseUrl, headers);
  const spooled = new HttpConsumer(baseUrl, clock, giveUp, { ...patience, onWaiting() {} }, headers);
  const spool = new Spool(configuration['data-dir'], to ?? null, {
    ...{ consumer: spooled, book, artifacts, otlp: otlpReading, settle: () => spooled.finish(), clock, logger, pid },
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
    artifacts,
    // The bridge of the user's own endpoint has another data folder than the one in which things are left.
    spoolTo: to ?? userEndpoint ?? null,
    where: baseUrl,
    async finish(_traceIds, deadline) {
      await spool.looked(deadline);
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
