import type { WebhookEventState } from '../../store/webhook/webhook-event.js';
import type { WebhookState } from '../../store/webhook/webhook-subscription.js';
import { Mark, type Mood } from './mark.js';

const MOODS: Readonly<Record<WebhookState | WebhookEventState, Mood>> = {
  active: 'good',
  inactive: 'neutral',
  archived: 'bad',
  delivered: 'good',
  failed: 'bad',
  skipped: 'neutral',
  pending: 'busy',
};

/** Where a subscription or an event stands. */
export function WebhookMark(props: {
  readonly state: WebhookState | WebhookEventState;
  /** Whether the last delivery to it failed. */
  readonly isFailing?: boolean;
}) {
  const { state, isFailing = false } = props;
  if (state === 'active' && isFailing) return <Mark word="active, failing" mood="busy" />;
  return <Mark word={state === 'pending' ? 'waiting' : state} mood={MOODS[state]} />;
}
