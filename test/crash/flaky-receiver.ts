import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import type { SeededRandom } from './seeded-random.js';

const bodySchema = z.looseObject({
  eventId: z.string(),
  eventType: z.string(),
  data: z.looseObject({ jobName: z.string(), runId: z.string() }),
});

/** A webhook that came. */
export interface FlakyDelivery extends z.output<typeof bodySchema> {
  readonly isTaken: boolean;
  /** Whether another attempt of the same event was under way. */
  readonly isOverlapping: boolean;
}

/** A receiver of webhooks that refuses some of them. */
export class FlakyReceiver {
  /** @param failureRate how many of them, from 0 to 1 @param delayMs before it answers, in milliseconds */
  static async open(random: SeededRandom, failureRate: number, delayMs = 0): Promise<FlakyReceiver> {
    const receiver = new FlakyReceiver(random, failureRate, delayMs);
    await new Promise<void>((resolve) => receiver.server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  /** In the order in which they came. */
  readonly got: FlakyDelivery[] = [];
  private readonly underWay = new Set<string>();
  private readonly server: Server;

  private constructor(random: SeededRandom, failureRate: number, delayMs: number) {
    this.server = createServer(async (request, response) => {
      let text = '';
      for await (const chunk of request) text += String(chunk);
      const body = bodySchema.parse(JSON.parse(text));
      const isTaken = random.next() >= failureRate;
      this.got.push({ ...body, isTaken, isOverlapping: this.underWay.has(body.eventId) });
      this.underWay.add(body.eventId);
      // Answered, or whoever sent it is gone.
      response.once('close', () => this.underWay.delete(body.eventId));
      if (delayMs > 0) await pause(delayMs);
      response.writeHead(isTaken ? 200 : 500).end();
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
