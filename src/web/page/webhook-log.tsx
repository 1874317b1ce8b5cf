import type { WebhookAttempt, WebhookEvent } from '../../store/webhook/webhook-event.js';
import { countText } from './count-text.js';
import { lengthText } from './length-text.js';
import { Moment } from './moment.js';
import { ScrollTable } from './scroll-table.js';
import { WebhookMark } from './webhook-state.js';

/** An event and the attempts to deliver it, oldest first. */
export interface LoggedEvent {
  readonly event: WebhookEvent;
  readonly attempts: readonly WebhookAttempt[];
}

/** Events of a subscription, newest first, with what became of each attempt. */
export function WebhookLog(props: {
  readonly subscriptionId: string;
  readonly events: readonly LoggedEvent[];
  /** Whether whoever looks may replay. */
  readonly isWriter: boolean;
}) {
  const { subscriptionId, events, isWriter } = props;
  if (events.length === 0) {
    return (
      <p class="empty">Nothing has happened that it is to be told of, or it was so long ago that it is not kept.</p>
    );
  }
  return (
    <ScrollTable
      label="Events, newest first"
      columns={['Event', 'State', 'Run', 'Attempts', ...(isWriter ? ['Again'] : [])]}
    >
      {events.map((one) => (
        <Row {...{ subscriptionId, isWriter }} logged={one} />
      ))}
    </ScrollTable>
  );
}

function Row(props: { readonly subscriptionId: string; readonly isWriter: boolean; readonly logged: LoggedEvent }) {
  const { subscriptionId, isWriter, logged } = props;
  const { event, attempts } = logged;
  const { id, eventType, state, facts, createdUnixMs, dueUnixMs } = event;
  return (
    <tr>
      <th scope="row">
        {eventType}
        <span class="sub">
          <Moment unixMs={createdUnixMs} />
        </span>
      </th>
      <td>
        <WebhookMark state={state} />
        {state === 'pending' && attempts.length > 0 && (
          <span class="sub">
            again at <Moment unixMs={dueUnixMs} />
          </span>
        )}
      </td>
      <td class="name">
        <a href={`/runs/${facts.runId}`}>#{facts.runId}</a> <span class="sub name">{facts.jobName}</span>
      </td>
      <td class="roomy">
        <Attempts event={event} attempts={attempts} />
      </td>
      {isWriter && (
        <td>
          {state !== 'pending' && (
            <form method="post" action={`/webhooks/${subscriptionId}/replay`}>
              <input type="hidden" name="event_id" value={id} />
              <button type="submit" aria-label={`Replay ${eventType} of run ${facts.runId}`}>
                Replay
              </button>
            </form>
          )}
        </td>
      )}
    </tr>
  );
}

/** The last one is shown, those before it on demand. */
function Attempts({ event, attempts }: LoggedEvent) {
  const last = attempts.at(-1);
  if (last === undefined) return <>none</>;
  const earlier = attempts.slice(0, -1);
  return (
    <>
      <Attempt attempt={last} />
      {earlier.length > 0 && (
        <details id={`attempts-${event.id}`}>
          <summary>{countText(earlier.length, 'attempt')} before</summary>
          <ul>
            {earlier.map((one) => (
              <li>
                <Attempt attempt={one} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Attempt({ attempt }: { readonly attempt: WebhookAttempt }) {
  const { httpStatusCode, durationMs, startedUnixMs, error, resentAfter } = attempt;
  return (
    <>
      {httpStatusCode === null ? 'no answer' : `answered ${httpStatusCode}`} after {lengthText(durationMs)}
      {error !== null && <span class="sub text">{error}</span>}
      {resentAfter !== null && (
        <span class="sub text">sent twice: its kept connection ended first ({resentAfter})</span>
      )}
      <span class="sub">
        <Moment unixMs={startedUnixMs} />
      </span>
    </>
  );
}
