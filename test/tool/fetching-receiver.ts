import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';
import type { BridgeProcess } from './bridge-process.js';
import { subscribe } from './subscribe.js';

const listSchema = z.object({ data: z.array(z.string()).nullable() });
const deliverySchema = z.looseObject({
  accountId: z.number(),
  eventType: z.string(),
  data: z.looseObject({ runId: z.string(), runStatus: z.string(), runStatusCode: z.number() }),
});

/** What came, and what the API had of the run while it was not answered yet. */
export interface FetchedDelivery extends z.output<typeof deliverySchema> {
  readonly isSigned: boolean;
  /** Bytes of each artifact, by its path. */
  readonly artifacts: Readonly<Record<string, number>>;
}

/** A receiver that subscribes to a bridge, and downloads a run's artifacts before it answers. */
export class FetchingReceiver {
  static async open(bridge: BridgeProcess, token: string): Promise<FetchingReceiver> {
    const receiver = new FetchingReceiver(bridge, token);
    await new Promise<void>((resolve) => receiver.server.listen(0, '127.0.0.1', resolve));
    const { port } = receiver.server.address() as AddressInfo;
    receiver.secret = (await subscribe(bridge, token, 'fetching', `http://127.0.0.1:${port}/`)).secret;
    return receiver;
  }

  readonly deliveries: FetchedDelivery[] = [];
  private secret = '';
  private readonly server: Server;

  private constructor(
    private readonly bridge: BridgeProcess,
    private readonly token: string,
  ) {
    this.server = createServer((request, response) => {
      // Whoever sent it sends it again.
      this.take(request, response).catch(() => response.writeHead(500).end());
    });
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const delivery = deliverySchema.parse(JSON.parse(body.toString()));
    const digest = createHmac('sha256', this.secret).update(body).digest('hex');
    const isSigned = request.headers.authorization === digest;
    const artifacts = delivery.eventType === 'job.run.completed' ? await this.fetchAll(delivery) : {};
    this.deliveries.push({ ...delivery, isSigned, artifacts });
    response.end();
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async fetchAll({ accountId, data }: z.output<typeof deliverySchema>): Promise<Record<string, number>> {
    const base = `/api/v2/accounts/${accountId}/runs/${data.runId}/artifacts/`;
    const list = listSchema.parse(JSON.parse((await this.ask(base)).toString())).data ?? [];
    const sizes: Record<string, number> = {};
    for (const path of list) sizes[path] = (await this.ask(base + path)).byteLength;
    return sizes;
  }

  /** As clients do, asks again where it is told to: an artifact is just being replaced by one with later records. */
  private async ask(path: string, triesLeft = 5): Promise<Buffer> {
    const answer = await fetch(this.bridge.webUrl + path, { headers: { authorization: `Token ${this.token}` } });
    const retryAfterS = answer.headers.get('retry-after');
    if (answer.status === 503 && retryAfterS !== null && triesLeft > 0) {
      await answer.arrayBuffer();
      await setTimeout(Number(retryAfterS) * 1_000);
      return this.ask(path, triesLeft - 1);
    }
    if (!answer.ok) throw new Error(`${path} is ${answer.status}`);
    return Buffer.from(await answer.arrayBuffer());
  }
}
