import { z } from 'zod';
import type { BridgeProcess } from './bridge-process.js';

const madeSchema = z.object({ data: z.object({ id: z.string(), hmac_secret: z.string() }) });

/** A subscription as the answer to its making shows it. */
export interface Subscribed {
  readonly id: string;
  readonly secret: string;
}

/** Subscribes to events of a bridge's first account, over the platform's API. @param url where they are delivered */
export async function subscribe(
  bridge: Pick<BridgeProcess, 'webUrl'>,
  token: string,
  name: string,
  url: string,
  eventTypes = ['job.run.started', 'job.run.errored', 'job.run.completed'],
): Promise<Subscribed> {
  const answer = await fetch(`${bridge.webUrl}/api/v3/accounts/10001/webhooks/subscriptions/`, {
    method: 'POST',
    headers: { authorization: `Token ${token}` },
    body: JSON.stringify({
      ...{ name, client_url: url },
      event_types: eventTypes,
    }),
  });
  if (answer.status !== 201) throw new Error(`the subscription is answered ${answer.status}: ${await answer.text()}`);
  const { data } = madeSchema.parse(await answer.json());
  return { id: data.id, secret: data.hmac_secret };
}
