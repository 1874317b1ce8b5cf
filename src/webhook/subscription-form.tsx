import type { Child } from 'hono/jsx';
import type { Caller } from '../api/caller.js';
import { Layout } from '../web/page/layout.js';
import type { NativeSubscriptionDocument } from './documents.js';
import { askedBy, CHANGE_WORDS, OCCASION_WORDS, OCCASIONS, whenOf } from './occasions.js';
import {
  CHAT_KINDS,
  MAX_TEMPLATE_LENGTH,
  WEBHOOK_KINDS,
  type WebhookKind,
  type WebhookSubscription,
} from './subscription.js';

/** What a form's fields have: texts as they were typed, and the values of ticked boxes. */
export type FormValues = Readonly<Record<string, readonly string[]>>;

/** A job that can be ticked. */
export interface OfferedJob {
  readonly id: number;
  readonly name: string;
}

/** Fields whose texts are lists, separated by commas or line breaks. */
const NAME_LISTS = ['environments', 'projects', 'models', 'tags', 'owners', 'groups'] as const;
/** Fields that follow from when a message is wanted. */
const CHOSEN_FIELDS = ['event_types', 'verdicts', 'statuses', 'transitions'] as const;
/** Fields that are true where they are ticked. */
const SWITCHES = ['active', 'run_details', 'per_owner', 'hold_repeats', 'authorization', 'standard_headers'] as const;
/** Texts that are `null` where they are empty. */
const OPTIONAL_TEXTS = ['notify_on_archive', 'expect'] as const;

const PAYLOAD_KINDS: readonly WebhookKind[] = ['http', 'cloudevents'];
const MESSAGE_KINDS: readonly WebhookKind[] = [...CHAT_KINDS, 'email'];
/** Types of which a field is; of all where it is not named. */
const KINDS_OF: Readonly<Record<string, readonly WebhookKind[]>> = {
  routing_key: ['pagerduty'],
  per_owner: MESSAGE_KINDS,
  run_details: PAYLOAD_KINDS,
  authorization: PAYLOAD_KINDS,
  signature_header: PAYLOAD_KINDS,
  standard_headers: PAYLOAD_KINDS,
  headers: WEBHOOK_KINDS.filter((kind) => kind !== 'email'),
  body_template: ['http'],
  // PagerDuty opens an incident of a failure, and resolves it.
  occasions: WEBHOOK_KINDS.filter((kind) => kind !== 'pagerduty'),
};

/** Reads the fields of a form as the browser sent them, by their names. */
export function formValues(body: unknown): FormValues {
  const given = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  return Object.fromEntries(
    given.map(([name, value]) => [
      name,
      (Array.isArray(value) ? value : [value]).filter((one): one is string => typeof one === 'string'),
    ]),
  );
}

/** What a new subscription's form has at first: the defaults of the API. */
export const NEW_SUBSCRIPTION: FormValues = {
  type: ['http'],
  when: ['each'],
  occasions: ['failed', 'recovered'],
  at_once: ['on'],
  active: ['on'],
  authorization: ['on'],
  standard_headers: ['on'],
};

/** Returns what the form of a subscription holds. @param document with its whole URL and template, for those who may change it */
export function valuesOf({ filters, ...settings }: NativeSubscriptionDocument): FormValues {
  const lists = NAME_LISTS.map((name) => [name, filters[name].join(', ')]);
  const { verdicts, statuses, transitions } = filters;
  const asked = { event_types: settings.event_types, verdicts, statuses, transitions };
  const { kind: when, occasions = [], isAtOnce: at_once = false } = whenOf(asked);
  const all = { ...settings, ...Object.fromEntries(lists), ...asked, when, occasions, at_once };
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, fieldValues(value)]));
}

function fieldValues(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.map(String);
  if (typeof value === 'boolean') return value ? ['on'] : [];
  return [String(value ?? '')];
}

/**
 * Returns what a form says, as a body of the native API. Headers and the routing key are never shown again, so of a form that
 * changes a subscription an empty field leaves them as they are. Fields of other types are left out, whatever they have:
 * PagerDuty has no choice of occasions, and gets failures and recoveries.
 * @param subscription `null` for a new one
 * @returns what is still to be checked
 */
export function inputOf(
  values: FormValues,
  subscription: Pick<WebhookSubscription, 'kind'> | null,
): Readonly<Record<string, unknown>> {
  const kind = subscription?.kind ?? WEBHOOK_KINDS.find((one) => one === values.type?.[0]?.trim());
  const all = allInputOf(
    { ...values, ...(kind === 'pagerduty' && { occasions: ['failed', 'recovered'] }) },
    subscription === null,
  );
  return Object.fromEntries(Object.entries(all).filter(([name]) => kind === undefined || isOfKind(name, kind)));
}

function isOfKind(field: string, kind: WebhookKind): boolean {
  return !Object.hasOwn(KINDS_OF, field) || KINDS_OF[field]?.includes(kind) === true;
}

function allInputOf(values: FormValues, isNew: boolean): Readonly<Record<string, unknown>> {
  const text = (name: string) => (values[name]?.[0] ?? '').trim();
  const list = (name: string) => words(text(name));
  const headers = text('headers');
  const perMinute = text('max_per_minute');
  const template = values.body_template?.[0] ?? '';
  const { event_types, ...chosen } = askedIn(values);
  return {
    ...(isNew && { type: text('type') }),
    name: text('name'),
    description: text('description'),
    client_url: text('client_url'),
    event_types,
    job_ids: values.job_ids ?? [],
    filters: {
      ...Object.fromEntries(NAME_LISTS.map((name) => [name, list(name)])),
      ...chosen,
    },
    ...Object.fromEntries(SWITCHES.map((name) => [name, (values[name] ?? []).length > 0])),
    ...Object.fromEntries(OPTIONAL_TEXTS.map((name) => [name, text(name) === '' ? null : text(name)])),
    ...(text('signature_header') !== '' && { signature_header: text('signature_header') }),
    ...(text('routing_key') !== '' && { routing_key: text('routing_key') }),
    ...(headers !== '' && { headers: headersIn(headers) }),
    ...(text('remove_headers') !== '' && { headers: {} }),
    body_template: template.trim() === '' ? null : template,
    max_per_minute: perMinute === '' ? null : Number(perMinute),
  };
}

/** Returns the events and verdicts that a form's choice asks for; of one that was made over the API what it kept of them. */
function askedIn(values: FormValues): Readonly<Record<(typeof CHOSEN_FIELDS)[number], readonly string[]>> {
  const isAtOnce = (values.at_once ?? []).length > 0;
  switch (values.when?.[0]) {
    case 'changes':
      return askedBy({ kind: 'changes', isAtOnce });
    case 'each': {
      const occasions = OCCASIONS.filter((one) => values.occasions?.includes(one));
      return askedBy({ kind: 'each', occasions, isAtOnce });
    }
    default: {
      const { event_types = [], verdicts = [], statuses = [], transitions = [] } = values;
      return { event_types, verdicts, statuses, transitions };
    }
  }
}

function words(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

/** Reads `Name: value`, one a line; what has no colon is a name with an empty value, which the API may refuse. */
function headersIn(text: string): Readonly<Record<string, string>> {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return colon === -1 ? [line.trim(), ''] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
}

/** What the form of a subscription shows. */
export interface FormPageProps {
  readonly caller: Caller;
  /** `null` for a new one. */
  readonly subscription: WebhookSubscription | null;
  readonly values: FormValues;
  readonly jobs: readonly OfferedJob[];
  /** Why what was sent was refused, in the API's words: the field's name, a colon, and what is wrong. */
  readonly problem: string | null;
  readonly version: string;
}

/** Shows the form that makes a subscription, or changes one. */
export function FormPage({ caller, subscription, values, jobs, problem, version }: FormPageProps) {
  const isNew = subscription === null;
  const kind = subscription?.kind ?? null;
  const title = isNew ? 'New webhook' : `Change ${subscription.name}`;
  const action = isNew ? '/webhooks/new' : `/webhooks/${subscription.id}/change`;
  return (
    <Layout title={title} caller={caller} version={version}>
      <h1 class="name">{title}</h1>
      {problem !== null && (
        <p class="notice bad" role="alert" id="problem">
          {problemText(problem)}
        </p>
      )}
      <form class="settings" method="post" action={action}>
        <Basics values={values} kind={kind} />
        <When values={values} kind={kind} />
        <Runs values={values} kind={kind} jobs={jobs} />
        <Message values={values} kind={kind} hasHeaders={subscription?.sealedHeaders != null} />
        <Watching values={values} kind={kind} />
        <p>
          <button type="submit">{isNew ? 'Create' : 'Save'}</button>{' '}
          <a href={isNew ? '/webhooks' : `/webhooks/${subscription.id}`}>Cancel</a>
        </p>
      </form>
    </Layout>
  );
}

/** Returns the API's words with the field's name as the form has it. */
function problemText(problem: string): string {
  const [, field = '', part = '', rest = ''] = /^(?:filters\.)?(\w+)(?:\.([^:]*))?: (.*)$/s.exec(problem) ?? [];
  const label = LABELS[field];
  if (label === undefined) return problem;
  return part === '' || /^\d+$/.test(part) ? `${label}: ${rest}` : `${label}, ${part}: ${rest}`;
}

const LABELS: Readonly<Record<string, string>> = {
  type: 'Type',
  name: 'Name',
  description: 'Description',
  client_url: 'Endpoint',
  event_types: 'When',
  job_ids: 'Jobs',
  verdicts: 'Verdicts',
  statuses: 'Statuses',
  transitions: 'Transitions',
  at_once: 'At once',
  environments: 'Environments',
  projects: 'Projects',
  models: 'Models',
  tags: 'Tags',
  owners: 'Owners',
  groups: 'Groups',
  run_details: 'Run details',
  per_owner: 'One message per owner',
  hold_repeats: 'Hold repeats',
  headers: 'Headers',
  body_template: 'Body template',
  authorization: 'Sign',
  signature_header: 'Signature header',
  standard_headers: 'Standard Webhooks headers',
  routing_key: 'Routing key',
  max_per_minute: 'Attempts a minute',
  expect: 'Expect a run',
  notify_on_archive: 'Notify on archive',
};

interface PartProps {
  readonly values: FormValues;
  /** `null` while it can be chosen. */
  readonly kind: WebhookKind | null;
}

/** What is for some types: of a new subscription the style sheet shows it where one of them is chosen. */
function kindClass(kinds: readonly WebhookKind[] | undefined): string {
  return kinds === undefined ? '' : ['of-kind', ...kinds.map((kind) => `of-${kind}`)].join(' ');
}

const isShown = (name: string, kind: WebhookKind | null) => kind === null || isOfKind(name, kind);

const ENDPOINT_HINTS: readonly (readonly [kinds: readonly WebhookKind[], hint: string])[] = [
  [PAYLOAD_KINDS, 'http:// or https://'],
  [CHAT_KINDS, 'The address that the chat gives for incoming webhooks'],
  [['email'], 'mailto:name@example.com; several addresses are separated by commas'],
  [['pagerduty'], 'https://events.pagerduty.com/v2/enqueue'],
];

function Basics({ values, kind }: PartProps) {
  const props = { values, kind };
  const hints = ENDPOINT_HINTS.filter(([kinds]) => kind === null || kinds.includes(kind));
  return (
    <>
      <Text name="name" {...props} isRequired />
      {kind === null ? (
        <label>
          {LABELS.type}
          <select name="type">
            {WEBHOOK_KINDS.map((one) => (
              <option value={one} selected={one === values.type?.[0]}>
                {one}
              </option>
            ))}
          </select>
        </label>
      ) : (
        <p class="hint">Type: {kind}. It cannot be changed.</p>
      )}
      <Text
        name="client_url"
        {...props}
        hint={hints.map(([kinds, hint]) => <span class={kind === null ? kindClass(kinds) : ''}>{hint}</span>)}
        isRequired
      />
      <Text
        name="routing_key"
        {...props}
        hint={`The integration key of a PagerDuty service. Not shown again${kind === null ? '' : '; empty keeps it'}`}
      />
      <Text name="description" {...props} />
      <Tick name="active" {...props} label="Active" />
    </>
  );
}

function When(props: PartProps) {
  const { values, kind } = props;
  const chosen = values.when?.[0] ?? 'kept';
  const choice = (value: string, label: Child) => (
    <label class="tick">
      <input type="radio" name="when" value={value} checked={value === chosen} /> {label}
    </label>
  );
  const kept = CHOSEN_FIELDS.flatMap((name) => (values[name] ?? []).map((value) => [name, value] as const));
  return (
    <fieldset class="choices">
      <legend>When do you want a message?</legend>
      {choice('each', 'Each time when')}
      {isShown('occasions', kind) &&
        OCCASIONS.map((one) => (
          <label class={`tick inner ${kindClass(KINDS_OF.occasions)}`}>
            <input type="checkbox" name="occasions" value={one} checked={values.occasions?.includes(one)} />{' '}
            {OCCASION_WORDS[one]}
          </label>
        ))}
      {(kind === null || kind === 'pagerduty') && (
        <p class={`hint inner ${kind === null ? kindClass(['pagerduty']) : ''}`}>
          a run fails. Its incident is resolved when all that had failed works again.
        </p>
      )}
      {choice('changes', `Only when ${CHANGE_WORDS}`)}
      {chosen === 'kept' &&
        choice('kept', <>As it was set over the API: {kept.map(([, value]) => value).join(', ')}</>)}
      {chosen === 'kept' && <Hidden fields={kept} />}
      <Tick
        name="at_once"
        {...props}
        label="Report a failure at once, before the run is over and its artifacts are there"
      />
    </fieldset>
  );
}

/** Keeps what a form does not show. */
function Hidden({ fields }: { readonly fields: readonly (readonly [name: string, value: string])[] }) {
  return (
    <>
      {fields.map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
    </>
  );
}

function Runs({ jobs, ...props }: PartProps & { readonly jobs: readonly OfferedJob[] }) {
  const { values } = props;
  return (
    <details open={['job_ids', ...NAME_LISTS].some((name) => (values[name] ?? []).join('') !== '')}>
      <summary>Only some runs</summary>
      {jobs.length > 0 && (
        <Ticks
          name="job_ids"
          {...props}
          offered={jobs.map(({ id, name }) => [String(id), name])}
          hint="None ticked: all jobs, also those to come"
        />
      )}
      <p class="hint">Lists are separated by commas. Models, tags, owners and groups are those of failed nodes.</p>
      {NAME_LISTS.map((name) => (
        <Text name={name} {...props} hint={name === 'models' ? 'Names or unique ids; * for any characters' : ''} />
      ))}
    </details>
  );
}

function Message({ hasHeaders, ...props }: PartProps & { readonly hasHeaders: boolean }) {
  return (
    <details>
      <summary>What is sent</summary>
      <Tick name="hold_repeats" {...props} label="Send the same failure again only after a day" />
      <Tick name="per_owner" {...props} label="A message for each owner's failures" />
      <Tick name="run_details" {...props} label="Add verdict, counts and failed nodes" />
      <Tick name="authorization" {...props} label="Sign as the hosted platform does" />
      <Text name="signature_header" {...props} hint="The header of that signature; Authorization where empty" />
      <Tick name="standard_headers" {...props} label="Sign by Standard Webhooks as well" />
      <Area
        name="headers"
        {...props}
        hint={`Name: value, one a line. Not shown again${hasHeaders ? '; empty keeps those that there are' : ''}`}
      />
      {hasHeaders && <Tick name="remove_headers" {...props} label="Remove all headers" />}
      <Area
        name="body_template"
        {...props}
        hint={`Makes the body, in the language Liquid; up to ${MAX_TEMPLATE_LENGTH.toLocaleString('en')} characters`}
      />
      <Text name="max_per_minute" {...props} hint="Evenly spread; empty for no limit" />
    </details>
  );
}

function Watching(props: PartProps) {
  const { values } = props;
  return (
    <details open={OPTIONAL_TEXTS.some((name) => (values[name] ?? []).join('') !== '')}>
      <summary>Missing runs, failing endpoint</summary>
      <Text name="expect" {...props} hint="Such as every 24h, or usual: says when a job has not run for so long" />
      <Text
        name="notify_on_archive"
        {...props}
        hint="Another webhook (wsu_…) or mailto:name@example.com, notified when this endpoint keeps failing"
      />
    </details>
  );
}

interface FieldProps extends PartProps {
  readonly name: string;
  readonly hint?: Child;
}

function Text({ name, values, kind, hint = '', isRequired = false }: FieldProps & { readonly isRequired?: boolean }) {
  if (!isShown(name, kind)) return null;
  return (
    <div class={kindClass(KINDS_OF[name])}>
      <label>
        {LABELS[name]}
        <input
          name={name}
          value={values[name]?.[0] ?? ''}
          required={isRequired}
          autocomplete="off"
          {...(hint !== '' && { 'aria-describedby': `about-${name}` })}
        />
      </label>
      <Hint name={name} text={hint} />
    </div>
  );
}

function Area({ name, values, kind, hint = '' }: FieldProps) {
  if (!isShown(name, kind)) return null;
  return (
    <div class={kindClass(KINDS_OF[name])}>
      <label>
        {LABELS[name]}
        <textarea name={name} rows={4} spellcheck={false} aria-describedby={`about-${name}`}>
          {values[name]?.[0] ?? ''}
        </textarea>
      </label>
      <Hint name={name} text={hint} />
    </div>
  );
}

function Hint({ name, text }: { readonly name: string; readonly text: Child }) {
  return text === '' ? null : (
    <p class="hint" id={`about-${name}`}>
      {text}
    </p>
  );
}

function Tick({ name, values, kind, label }: FieldProps & { readonly label: string }) {
  if (!isShown(name, kind)) return null;
  return (
    <label class={`tick ${kindClass(KINDS_OF[name])}`.trim()}>
      <input type="checkbox" name={name} value="on" checked={(values[name] ?? []).length > 0} /> {label}
    </label>
  );
}

/** Shows boxes of which any may be ticked. @param props.offered values with what stands beside them */
function Ticks(props: FieldProps & { readonly offered: readonly (readonly [value: string, label: Child])[] }) {
  const { name, values, offered, hint = '' } = props;
  const ticked = values[name] ?? [];
  return (
    <fieldset>
      <legend>{LABELS[name]}</legend>
      {offered.map(([value, label]) => (
        <label class="tick">
          <input type="checkbox" name={name} value={value} checked={ticked.includes(value)} /> {label}
        </label>
      ))}
      {hint !== '' && <span class="hint">{hint}</span>}
    </fieldset>
  );
}

/** Returns whether deliveries are signed: those that programs read, where it was not switched off. */
export function isSigned({
  kind,
  hasAuthorization,
  hasStandardHeaders,
}: Pick<WebhookSubscription, 'kind' | 'hasAuthorization' | 'hasStandardHeaders'>): boolean {
  return PAYLOAD_KINDS.includes(kind) && (hasAuthorization || hasStandardHeaders);
}

/** Shows a secret this once: after a subscription was made, or got a new one. */
export function SecretPage(props: {
  readonly caller: Caller;
  readonly subscription: WebhookSubscription;
  readonly secret: string;
  /** Of a new subscription; else the secret replaces another one. */
  readonly isNew: boolean;
  readonly version: string;
}) {
  const { caller, subscription, secret, isNew, version } = props;
  const { id, name, oldSecretUntilUnixMs } = subscription;
  const until = oldSecretUntilUnixMs === null ? null : new Date(oldSecretUntilUnixMs).toISOString().slice(0, 16);
  return (
    <Layout title={name} caller={caller} version={version}>
      <h1 class="name">{isNew ? `${name} was created` : `${name} has a new secret`}</h1>
      <p>The signing secret. Copy it now: it is not shown again.</p>
      <pre class="command" tabindex={0}>
        {secret}
      </pre>
      {until !== null && <p>The old secret signs as well until {until.replace('T', ' ')} UTC.</p>}
      <p>
        <a href={`/webhooks/${id}`}>Go to {name}, and send a test</a>
      </p>
    </Layout>
  );
}

/** Asks whether a subscription is to be deleted. */
export function DeletePage(props: {
  readonly caller: Caller;
  readonly subscription: WebhookSubscription;
  readonly pendingCount: number;
  readonly version: string;
}) {
  const { caller, subscription, pendingCount, version } = props;
  const { id, name } = subscription;
  return (
    <Layout title={`Delete ${name}`} caller={caller} version={version}>
      <h1 class="name">Delete {name}?</h1>
      <p>
        Nothing is sent to it any more, and its delivery log goes with it
        {pendingCount > 0 && `, ${pendingCount.toLocaleString('en')} waiting events included`}. It cannot be undone; to
        stop deliveries for a while, pause it.
      </p>
      <form class="actions" method="post" action={`/webhooks/${id}/delete`}>
        <button type="submit">Delete</button> <a href={`/webhooks/${id}`}>Cancel</a>
      </form>
    </Layout>
  );
}
