import type { Caller } from '../../api/caller.js';
import type { WebhookSubscription } from '../../store/webhook/webhook-subscription.js';
import { countText } from './count-text.js';
import { LastOutcome } from './last-outcome.js';
import { Layout } from './layout.js';
import { Moment } from './moment.js';
import { Pager } from './pager.js';
import { type Column, ScrollTable } from './scroll-table.js';
import { shownAddress } from './shown-address.js';
import { WebhookMark } from './webhook-state.js';

const COLUMNS: readonly Column[] = [
  'Name',
  'State',
  'Last delivery',
  { number: 'Failures in a row' },
  { number: 'Waiting' },
  'Endpoint',
];

/** What the list of subscriptions shows. */
export interface WebhookListProps {
  readonly caller: Caller;
  readonly subscriptions: readonly WebhookSubscription[];
  /** Events that wait, by the subscription's id. */
  readonly pending: ReadonlyMap<string, number>;
  readonly page: number;
  readonly pageSize: number;
  readonly totalCount: number;
  readonly version: string;
}

/** The webhook subscriptions of an account, and how they stand. */
export function WebhookListPage({ caller, subscriptions, pending, version, ...part }: WebhookListProps) {
  const archived = subscriptions.filter(({ state }) => state === 'archived');
  return (
    <Layout title="Webhooks" caller={caller} version={version} isLive>
      <h1>Webhooks</h1>
      <div id="live" data-live="5000">
        {archived.length > 0 && (
          <p class="notice bad strong" role="alert">
            {countText(archived.length, 'subscription')} on this page {archived.length === 1 ? 'was' : 'were'} archived:
            nothing is sent there any more.
          </p>
        )}
        {part.totalCount === 0 ? <NoWebhook accountId={caller.accountId} /> : <Table {...{ subscriptions, pending }} />}
        {part.totalCount > part.pageSize && (
          <Pager {...part} noun="subscription" href={(page) => `/webhooks?page=${page}`} words={['Before', 'After']} />
        )}
      </div>
    </Layout>
  );
}

function Table({ subscriptions, pending }: Pick<WebhookListProps, 'subscriptions' | 'pending'>) {
  return (
    <ScrollTable label="Subscriptions, oldest first" columns={COLUMNS}>
      {subscriptions.map((one) => (
        <Row subscription={one} pendingCount={pending.get(one.id) ?? 0} />
      ))}
    </ScrollTable>
  );
}

function Row(props: { readonly subscription: WebhookSubscription; readonly pendingCount: number }) {
  const { subscription, pendingCount } = props;
  const { id, name, kind, state, archiveReason, failedCount, updatedUnixMs } = subscription;
  return (
    <tr>
      <th scope="row" class="name">
        <a href={`/webhooks/${id}`}>{name}</a>
        <span class="sub">{kind}</span>
      </th>
      <td>
        <WebhookMark state={state} isFailing={failedCount > 0} />
        {state === 'archived' && (
          <span class="sub">
            {archiveReason}, <Moment unixMs={updatedUnixMs} />
          </span>
        )}
      </td>
      <td>
        <LastOutcome standing={subscription} />
      </td>
      <td class={failedCount > 0 ? 'number bad' : 'number'}>{failedCount.toLocaleString('en')}</td>
      <td class="number">{pendingCount.toLocaleString('en')}</td>
      <td class="name">{shownAddress(subscription)}</td>
    </tr>
  );
}

function NoWebhook({ accountId }: { readonly accountId: number }) {
  const body = '{"name":"pager","client_url":"https://hooks.example.com/dbt","event_types":["job.run.errored"]}';
  return (
    <section class="empty">
      <h2>Nobody is told of runs yet</h2>
      <p>Subscribe over the API; chats and mail can be told, too:</p>
      <pre class="command" tabindex={0}>
        {`curl -H "Authorization: Token $TOKEN" "$RUN_BRIDGE/api/v3/accounts/${accountId}/webhooks/subscriptions/" -d '${body}'`}
      </pre>
      <p>
        <code>$RUN_BRIDGE</code> is the address of this page without its path.
      </p>
    </section>
  );
}
