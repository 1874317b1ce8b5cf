import { z } from 'zod';
import { ApiError } from '../api/api-error.js';
import { EXPECTED_PROBLEM, parseExpectedMs } from '../config/duration.js';
import { nearestName } from '../config/suggestion.js';
import { reasonOf } from '../core/errors.js';
import { type CamelCase, camelCase } from '../core/snake-case.js';
import type { RunCatalog } from '../storage/run-catalog.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import { filterLists, nativeSubscriptionSchema } from './documents.js';
import { MASKED_PART } from './secrets.js';
import {
  isForPeople,
  MAX_TEMPLATE_LENGTH,
  NO_FILTER,
  WEBHOOK_EVENT_TYPES,
  WEBHOOK_KINDS,
  type WebhookFilter,
  type WebhookKind,
  type WebhookSubscription,
} from './subscription.js';
import { DRAFT_DEFAULTS, type SubscriptionService, type WebhookDraft } from './subscription-service.js';

const MAX_LIST = 1_000;
const jobId = z
  .union(
    [
      z.int().positive(),
      z
        .string()
        .regex(/^\d{1,15}$/)
        .transform(Number),
    ],
    'is no number of a job',
  )
  .meta({ description: "a job's number" });
const name = z.string('must be a string').trim().min(1, 'is empty').max(255, 'is longer than 255 characters');

/** The values the hosted platform accepts. Clients send an empty `id`, and null for what they do not know. */
const platformInputSchema = z.object({
  event_types: z
    .array(z.enum(WEBHOOK_EVENT_TYPES, `is none of ${WEBHOOK_EVENT_TYPES.join(', ')}`), 'is no list')
    .min(1, `is empty; give one or more of ${WEBHOOK_EVENT_TYPES.join(', ')}`)
    .transform((types) => [...new Set(types)]),
  name,
  client_url: z.string('must be a string').max(2_000, 'is longer than 2,000 characters'),
  active: z.boolean('is neither true nor false'),
  description: z
    .string('must be a string')
    .max(2_000, 'is longer than 2,000 characters')
    .nullable()
    .transform((text) => text ?? ''),
  job_ids: z
    .union([jobId.transform((one) => [one]), z.array(jobId).max(MAX_LIST)], 'is no list of numbers of jobs')
    .nullable()
    .transform((ids) => [...new Set(ids)]),
});

const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}$/;
/** Headers that a delivery sets itself; all others may be added. For `Authorization` and `Content-Type` see `checkParts`. */
const RESERVED_HEADERS = /^(content-(length|encoding)|transfer-encoding|connection|host|webhook-.*)$/i;
const MAX_HEADERS = 32;
const MAX_HEADER_LENGTH = 4_000;
const STATUSES = { success: RUN_STATUS.success, errored: RUN_STATUS.error, cancelled: RUN_STATUS.cancelled } as const;

const filterSchema = z
  .strictObject(filterLists, {
    error: ({ code }) => (code === 'invalid_type' ? 'must be an object' : undefined),
  })
  .partial();

const switched = z.boolean('is neither true nor false');

/** What the native API takes beyond that. Other fields are refused, so that no misspelt setting is lost. */
const nativeInputSchema = z.strictObject({
  ...platformInputSchema.shape,
  type: z.enum(WEBHOOK_KINDS, `is none of ${WEBHOOK_KINDS.join(', ')}`),
  filters: filterSchema.transform(({ statuses = [], ...lists }): WebhookFilter => {
    return { ...NO_FILTER, ...(lists as Partial<WebhookFilter>), statuses: statuses.map((one) => STATUSES[one]) };
  }),
  headers: z
    .record(
      z
        .string()
        .regex(HEADER_NAME, 'is not the name of a header: up to 100 letters, digits and hyphens')
        .refine(
          (one) => !RESERVED_HEADERS.test(one),
          'is a header that each delivery sets itself; choose another name',
        ),
      z
        .string('must be a string')
        .regex(/^[\t\x20-\x7e]*$/, 'contains a character that headers cannot carry, such as a line break or an umlaut')
        .max(MAX_HEADER_LENGTH, `is longer than ${MAX_HEADER_LENGTH.toLocaleString('en')} characters`),
      'must be an object of names and values, for example {"X-Api-Key": "…"}',
    )
    .refine((headers) => Object.keys(headers).length <= MAX_HEADERS, `has more than ${MAX_HEADERS} headers`),
  run_details: switched.meta({ description: 'payloads have run_bridge: verdict, counts and failed nodes' }),
  per_owner: switched.meta({ description: "chats and mail: a message for each owner's failures" }),
  hold_repeats: switched.meta({ description: 'the same failure is reported again only after a day' }),
  authorization: switched,
  signature_header: z
    .string('must be a string')
    .regex(HEADER_NAME, 'is not the name of a header: up to 100 letters, digits and hyphens')
    .refine((one) => !RESERVED_HEADERS.test(one), 'is a header that each delivery sets itself; choose another name')
    .transform((one) => one.toLowerCase())
    .meta({ description: 'carries the signature of `authorization`; Authorization by default' }),
  standard_headers: switched,
  body_template: z
    .string('must be a string, or null for the usual body')
    .min(1, 'is empty; give null for the usual body')
    .max(MAX_TEMPLATE_LENGTH, `is longer than ${MAX_TEMPLATE_LENGTH.toLocaleString('en')} characters`)
    .nullable()
    .meta({ description: 'of type http: makes the bodies of deliveries, in the language Liquid' }),
  routing_key: z
    .string('must be a string')
    .regex(/^[\x21-\x7e]{1,200}$/, 'is no integration key of PagerDuty')
    .meta({ description: 'of type pagerduty: the integration key of a service; never shown again' }),
  notify_on_archive: z
    .string('must be a string')
    .regex(
      /^(wsu_\w+|mailto:[^\s@,;]+@[^\s@,;]+(,[^\s@,;]+@[^\s@,;]+){0,49})$/,
      'is neither the id of a webhook nor mailto: and an address',
    )
    .nullable()
    .meta({
      description: 'another webhook, or an address, that is notified at 50, 80 and 100 % of the way to archiving',
    }),
  expect: z
    .string('must be a string such as every 24h or usual, or null')
    .transform((text, context) => {
      const expectMs = parseExpectedMs(text);
      if (expectMs !== undefined) return expectMs;
      context.addIssue({ code: 'custom', message: EXPECTED_PROBLEM });
      return z.NEVER;
    })
    .nullable()
    .meta({
      description:
        'such as every 24h, or usual: is notified of a job that has not run for so long, and of runs that take far longer than usual',
    }),
  max_per_minute: z
    .int('must be a whole number, or null for no limit')
    .min(1, 'is less than 1')
    .max(60_000, 'is more than 60,000')
    .nullable(),
});

/** The required fields of a new subscription; the rest has defaults. */
const REQUIRED = { event_types: true, name: true, client_url: true } as const;

/** The bodies of a new subscription and of a change, on either API. */
export const bodySchemas = {
  platform: { create: platformInputSchema.partial().required(REQUIRED), change: platformInputSchema.partial() },
  native: { create: nativeInputSchema.partial().required(REQUIRED), change: nativeInputSchema.partial() },
} as const;

const MAX_OVERLAP_S = 30 * 86_400;

/** Body of a rotation. */
export const rotationSchema = z.strictObject({
  overlap_seconds: z
    .int('must be a whole number')
    .min(0, 'is less than 0')
    .max(MAX_OVERLAP_S, `is more than ${MAX_OVERLAP_S.toLocaleString('en')}, which are 30 days`)
    .default(86_400)
    .meta({ description: 'how long the old secret signs as well; a day by default' }),
});
/** Body of a replay. */
export const replaySchema = z.union(
  [
    z.strictObject({ event_id: z.string() }),
    z.strictObject({
      since: z.iso
        .datetime({ offset: true, error: 'must be a time, for example 2026-01-31T12:00:00Z' })
        .meta({ description: 'all that failed or were skipped from then on' }),
      webhook_id: z.string().optional(),
    }),
  ],
  'has neither an event_id nor a since alone',
);
/** Parameters of a preview. */
export const previewSchema = z.object({
  event_type: z.enum(WEBHOOK_EVENT_TYPES).default('job.run.completed'),
  run_id: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional()
    .meta({ description: 'default: the latest run' }),
});

type NativeInput = z.output<typeof nativeInputSchema>;
type Input = { readonly [K in keyof NativeInput]?: NativeInput[K] | undefined };

/** Reads a body. @throws ApiError 400 that names the field */
export function parseInput<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const parsed = schema.safeParse(body ?? {});
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  if (issue?.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys;
    throw new ApiError(400, `${[...issue.path, key].join('.')}: ${unknownFieldWords(key)}.`);
  }
  const field = issue?.path.join('.') ?? '';
  const isOther = issue?.code === 'invalid_type';
  // What is wrong with a key of a record stands in a further issue.
  if (issue?.code === 'invalid_key') throw new ApiError(400, `${field}: ${issue.issues[0]?.message}.`);
  if (field === '') throw new ApiError(400, `The body ${isOther ? 'is no JSON object; send one' : issue?.message}.`);
  const isMissing = isOther && valueAt(body, issue.path) === undefined;
  throw new ApiError(400, `${field}: ${isMissing ? 'is missing' : issue?.message}.`);
}

/** Returns what is wrong with a field that bodies do not have. */
function unknownFieldWords(name: string): string {
  if (name in nativeSubscriptionSchema.shape) return 'is only answered, and cannot be set; leave it out';
  const meant = nearestName(name, [...Object.keys(nativeInputSchema.shape), ...Object.keys(filterLists)]);
  return `there is no such field${meant === undefined ? '' : ` (perhaps you mean ${meant})`}`;
}

/** What settings are called in the program where that is more than another spelling of the API's name. */
const SETTING_NAMES = {
  ...{ type: 'kind', active: 'isActive', filters: 'filter', expect: 'expectMs' },
  ...{ run_details: 'hasRunDetails', per_owner: 'isPerOwner', hold_repeats: 'holdsRepeats' },
  ...{ authorization: 'hasAuthorization', standard_headers: 'hasStandardHeaders' },
} as const;

type SettingName<Field> = Field extends keyof typeof SETTING_NAMES ? (typeof SETTING_NAMES)[Field] : CamelCase<Field>;
type GivenSettings = { readonly [Field in keyof NativeInput as SettingName<Field>]?: NativeInput[Field] };

/** Returns the given settings, by the program's names. @throws ApiError 400 that names the field */
async function toDraft(
  input: Input,
  kind: WebhookKind,
  accountId: number,
  jobs: Pick<RunCatalog, 'findJobs'>,
): Promise<Partial<WebhookDraft>> {
  const { job_ids: jobIds = [], client_url: clientUrl } = input;
  const known = new Set((await jobs.findJobs(accountId, jobIds)).map(({ id }) => id));
  const unknown = jobIds.find((id) => !known.has(id));
  if (unknown !== undefined) throw new ApiError(400, `job_ids: there is no job ${unknown} in this account.`);
  if (input.per_owner === true && !isForPeople(kind)) {
    throw new ApiError(
      400,
      `per_owner: is for chats and mail; ${kind} has whole runs, and run_details names the nodes.`,
    );
  }
  if (input.run_details === true && kind !== 'http' && kind !== 'cloudevents') {
    throw new ApiError(
      400,
      `run_details: is for payloads, of types http and cloudevents; ${kind} names the nodes anyway.`,
    );
  }
  if (clientUrl !== undefined) checkUrl(clientUrl, kind);
  const names: Readonly<Record<string, string>> = SETTING_NAMES;
  const settings = Object.entries(input).map(([field, value]) => [names[field] ?? camelCase(field), value]);
  return Object.fromEntries(settings) as GivenSettings;
}

/** What a subscription is made and changed with. */
export interface SubscriptionMaking {
  readonly jobs: Pick<RunCatalog, 'findJobs'>;
  readonly openService: () => Promise<SubscriptionService>;
}

/**
 * Makes a subscription of a body.
 * @returns it, and its signing secret, which is shown this once
 * @throws ApiError 400 that names the field
 */
export async function createSubscription(
  input: Input & Required<Pick<Input, keyof typeof REQUIRED>>,
  accountId: number,
  { jobs, openService }: SubscriptionMaking,
): Promise<{ readonly subscription: WebhookSubscription; readonly secret: string }> {
  const given = await toDraft(input, input.type ?? 'http', accountId, jobs);
  const { clientUrl = '', eventTypes = [], name = '' } = given;
  const draft = { ...DRAFT_DEFAULTS, ...given, clientUrl, eventTypes, name };
  const service = await openService();
  await checkDraft(draft, undefined, service);
  return service.create(accountId, draft);
}

/** Changes what a body gives of a subscription. @throws ApiError 400 that names the field, and 404 */
export async function changeSubscription(
  input: Input,
  current: WebhookSubscription,
  { jobs, openService }: SubscriptionMaking,
): Promise<WebhookSubscription> {
  const { id, accountId, kind } = current;
  if (input.type !== undefined && input.type !== kind) {
    throw new ApiError(400, 'type: cannot be changed; create another subscription.');
  }
  const draft = await toDraft(input, kind, accountId, jobs);
  const service = await openService();
  await checkDraft(draft, current, service);
  const changed = await service.change(accountId, id, draft);
  if (changed === undefined) throw ApiError.notFound();
  return changed;
}

/** @throws ApiError 400 where the parts of a subscription do not fit together after a change, or its template cannot be used */
async function checkDraft(
  given: Partial<WebhookDraft>,
  current: WebhookSubscription | undefined,
  service: SubscriptionService,
): Promise<void> {
  const headers = given.headers ?? (current === undefined ? {} : await service.headersOf(current));
  const { bodyTemplate, routingKey } = given;
  checkParts({
    ...{ kind: given.kind ?? current?.kind ?? 'http', eventTypes: given.eventTypes ?? current?.eventTypes ?? [] },
    hasAuthorization: given.hasAuthorization ?? current?.hasAuthorization ?? true,
    signatureHeader: given.signatureHeader ?? current?.signatureHeader ?? 'authorization',
    bodyTemplate: bodyTemplate === undefined && current !== undefined ? current.sealedTemplate : (bodyTemplate ?? null),
    headerNames: Object.keys(headers),
    hasRoutingKey: routingKey === undefined ? (current?.sealedRoutingKey ?? null) !== null : routingKey !== null,
  });
  if (bodyTemplate === undefined || bodyTemplate === null) return;
  try {
    const subscription = {
      id: current?.id ?? '',
      accountId: current?.accountId ?? 0,
      name: current?.name ?? '',
      hasRunDetails: false,
    };
    await service.checkTemplate(subscription, bodyTemplate, headers);
  } catch (error) {
    // Errors of the template library are answered to the sender of the template.
    throw new ApiError(400, `body_template: ${reasonOf(error)}.`);
  }
}

/** What of a subscription has to fit together. */
interface SubscriptionParts
  extends Pick<WebhookDraft, 'kind' | 'eventTypes' | 'hasAuthorization' | 'signatureHeader' | 'bodyTemplate'> {
  readonly headerNames: readonly string[];
  readonly hasRoutingKey: boolean;
}

/** @throws ApiError 400 that names the field that does not fit the others */
function checkParts(parts: SubscriptionParts): void {
  const { kind, eventTypes, headerNames, hasAuthorization, signatureHeader, bodyTemplate, hasRoutingKey } = parts;
  const headerNamed = (name: string) => headerNames.find((one) => one.toLowerCase() === name);
  const isSigned = kind === 'http' || kind === 'cloudevents';
  const doubled = isSigned && hasAuthorization ? headerNamed(signatureHeader) : undefined;
  if (doubled !== undefined) {
    const ways = 'set authorization to false, or signature_header to another name';
    throw new ApiError(400, `headers.${doubled}: deliveries carry their signature in it; ${ways}.`);
  }
  const type = bodyTemplate === null ? headerNamed('content-type') : undefined;
  if (type !== undefined) {
    throw new ApiError(400, `headers.${type}: is set by each delivery; only a body_template may have another.`);
  }
  if (bodyTemplate !== null && kind !== 'http') {
    throw new ApiError(400, `body_template: belongs to type http, not to ${kind}.`);
  }
  if (hasRoutingKey !== (kind === 'pagerduty')) {
    const problem = hasRoutingKey ? `belongs to type pagerduty, not to ${kind}` : 'is missing; give that of a service';
    throw new ApiError(400, `routing_key: ${problem}.`);
  }
  if (kind === 'pagerduty' && eventTypes.every((one) => one === 'job.run.started')) {
    throw new ApiError(400, 'event_types: a start is no incident; give job.run.errored, job.run.completed or both.');
  }
}

/** @throws ApiError 400 */
function checkUrl(text: string, kind: WebhookKind): void {
  if (text.includes(MASKED_PART)) {
    throw new ApiError(400, `client_url: is masked, with ${MASKED_PART} for a part of it; give the whole URL.`);
  }
  if (kind === 'email') {
    if (/^mailto:[^\s@,;]+@[^\s@,;]+(,[^\s@,;]+@[^\s@,;]+){0,49}$/.test(text)) return;
    throw new ApiError(400, 'client_url: must be mailto:name@host, or several addresses separated by commas.');
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new ApiError(400, 'client_url: must be a URL that begins with http:// or https://.');
  }
  if (url.username !== '' || url.password !== '') {
    throw new ApiError(400, 'client_url: contains a user name or password; send credentials in a header.');
  }
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const key of path) {
    found = typeof found === 'object' && found !== null ? Reflect.get(found, key) : undefined;
  }
  return found;
}
