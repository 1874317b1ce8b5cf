import { ApiError } from '../../api/api-error.js';

/** What a form asks to be delivered again. */
export type ReplayForm = { readonly eventId: string } | { readonly sinceUnixMs: number };

/** Reads the form: an event, or a time in UTC as browsers write it. @throws ApiError 400 */
export function replayForm(body: unknown): ReplayForm {
  const fields = new Map<string, unknown>(typeof body === 'object' && body !== null ? Object.entries(body) : []);
  const eventId = fields.get('event_id');
  if (typeof eventId === 'string' && eventId !== '') return { eventId };
  const since = fields.get('since');
  const isTime = typeof since === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?$/.test(since);
  const sinceUnixMs = isTime ? Date.parse(`${since}Z`) : Number.NaN;
  if (Number.isNaN(sinceUnixMs)) throw new ApiError(400, 'Since when is no time such as 2026-01-31T12:00.');
  return { sinceUnixMs };
}
