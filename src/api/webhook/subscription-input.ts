import { z } from 'zod';
import type { JobCatalog } from '../../store/run-catalog.js';
import { RUN_STATUS } from '../../store/run-status.js';
import {
  NO_FILTER,
  WEBHOOK_EVENT_TYPES,
  WEBHOOK_KINDS,
  WEBHOOK_TRANSITIONS,
  type WebhookKind,
} from '../../store/webhook/webhook-subscription.js';
import { MASKED_PART } from '../../webhook/subscription-secrets.js';
import type { WebhookDraft } from '../../webhook/webhook-desk.js';
import { ApiError } from '../api-error.js';

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
const name = z.string('is no text').trim().min(1, 'is empty').max(255, 'is longer than 255 characters');

/** What the hosted platform takes. Clients send an empty `id`, and what they do not know as null. */
export const platformInputSchema = z.object({
  event_types: z
    .array(z.enum(WEBHOOK_EVENT_TYPES, `is none of ${WEBHOOK_EVENT_TYPES.join(', ')}`), 'is no list')
    .min(1, `is empty; give one or more of ${WEBHOOK_EVENT_TYPES.join(', ')}`)
    .transform((types) => [...new Set(types)]),
  name,
  client_url: z.string('is no text').max(2_000, 'is longer than 2,000 characters'),
  active: z.boolean('is neither true nor false'),
  description: z.string('is no text').max(2_000, 'is longer than 2,000 characters').nullable(),
  job_ids: z
    .union([jobId.transform((one) => [one]), z.array(jobId).max(MAX_LIST)], 'is no list of numbers of jobs')
    .nullable(),
});

const names = z.array(z.string().min(1).max(255), 'is no list of names').max(MAX_LIST);
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}$/;
/** What a delivery itself says; everything else may be added. */
const OWN_HEADERS = /^(authorization|content-(length|type|encoding)|transfer-encoding|connection|host|webhook-.*)$/i;
const STATUSES = { success: RUN_STATUS.success, errored: RUN_STATUS.error, cancelled: RUN_STATUS.cancelled } as const;

/** What can be said beyond that. */
export const ownInputSchema = platformInputSchema.extend({
  type: z.enum(WEBHOOK_KINDS, `is none of ${WEBHOOK_KINDS.join(', ')}`),
  filters: z.strictObject({
    environments: names.optional(),
    projects: names.optional(),
    statuses: z.array(z.enum(['success', 'errored', 'cancelled'])).optional(),
    transitions: z.array(z.enum(WEBHOOK_TRANSITIONS)).optional(),
  }),
  headers: z
    .record(
      z
        .string()
        .regex(HEADER_NAME, 'is no name of a header')
        .refine((one) => !OWN_HEADERS.test(one), 'is a header that deliveries have themselves'),
      z.string().regex(/^[\t\x20-\x7e]{0,4000}$/, 'holds what no header can'),
    )
    .refine((headers) => Object.keys(headers).length <= 32, 'has more than 32 headers'),
  authorization: z.boolean(),
  standard_headers: z.boolean(),
  max_per_minute: z.int().min(1).max(60_000).nullable(),
});

/** What a new subscription needs; the rest has defaults. */
const REQUIRED = { event_types: true, name: true, client_url: true } as const;

/** The bodies of a new subscription and of a change, on either API. */
export const bodySchemas = {
  platform: { create: platformInputSchema.partial().required(REQUIRED), change: platformInputSchema.partial() },
  own: { create: ownInputSchema.partial().required(REQUIRED), change: ownInputSchema.partial() },
} as const;

type OwnInput = z.output<typeof ownInputSchema>;
type Input = { readonly [K in keyof OwnInput]?: OwnInput[K] | undefined };

/** Reads a body. @throws ApiError 400 that names the field */
export function parseInput<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const parsed = schema.safeParse(body ?? {});
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join('.') ?? '';
  const isOther = issue?.code === 'invalid_type';
  if (field === '') throw new ApiError(400, `The body ${isOther ? 'is no JSON object; send one' : issue?.message}.`);
  const isMissing = isOther && valueAt(body, issue.path) === undefined;
  throw new ApiError(400, `${field}: ${isMissing ? 'is missing' : issue?.message}.`);
}

/** What was said, in the program's words; only what was said. @throws ApiError 400 that names the field */
export async function toDraft(
  input: Input,
  kind: WebhookKind,
  accountId: number,
  jobs: Pick<JobCatalog, 'findJobs'>,
): Promise<Partial<WebhookDraft>> {
  const jobIds = input.job_ids === undefined ? undefined : [...new Set(input.job_ids ?? [])];
  if (jobIds !== undefined) {
    const known = new Set((await jobs.findJobs(accountId, jobIds)).map(({ id }) => id));
    const unknown = jobIds.find((id) => !known.has(id));
    if (unknown !== undefined) throw new ApiError(400, `job_ids: there is no job ${unknown} in this account.`);
  }
  const { filters } = input;
  return {
    ...(input.type !== undefined && { kind: input.type }),
    ...(input.name !== undefined && { name: input.name }),
    ...(input.description !== undefined && { description: input.description ?? '' }),
    ...(input.client_url !== undefined && { clientUrl: checkedUrl(input.client_url, kind) }),
    ...(input.event_types !== undefined && { eventTypes: input.event_types }),
    ...(jobIds !== undefined && { jobIds }),
    ...(input.active !== undefined && { isActive: input.active }),
    ...(filters !== undefined && {
      filter: {
        environments: filters.environments ?? [],
        projects: filters.projects ?? [],
        statuses: (filters.statuses ?? []).map((one) => STATUSES[one]),
        transitions: filters.transitions ?? [],
      },
    }),
    ...(input.headers !== undefined && { headers: input.headers }),
    ...(input.authorization !== undefined && { hasAuthorization: input.authorization }),
    ...(input.standard_headers !== undefined && { hasStandardHeaders: input.standard_headers }),
    ...(input.max_per_minute !== undefined && { maxPerMinute: input.max_per_minute }),
  };
}

/** What nobody said of a new subscription. */
export const DRAFT_DEFAULTS: Omit<WebhookDraft, 'name' | 'clientUrl' | 'eventTypes'> = {
  ...{ kind: 'http', description: '', jobIds: [], isActive: true, filter: NO_FILTER, headers: {} },
  ...{ hasAuthorization: true, hasStandardHeaders: true, maxPerMinute: null },
};

/** @throws ApiError 400 */
function checkedUrl(text: string, kind: WebhookKind): string {
  if (text.includes(MASKED_PART)) {
    throw new ApiError(400, `client_url: is masked, with ${MASKED_PART} for a part of it; give the whole URL.`);
  }
  if (kind === 'email') {
    if (/^mailto:[^\s@,;]+@[^\s@,;]+(,[^\s@,;]+@[^\s@,;]+){0,49}$/.test(text)) return text;
    throw new ApiError(400, 'client_url: is no mailto:name@host, or several addresses with commas between them.');
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new ApiError(400, 'client_url: is no URL that begins with http:// or https://.');
  }
  if (url.username !== '' || url.password !== '') {
    throw new ApiError(400, 'client_url: holds a user or a password; put what the endpoint asks for into a header.');
  }
  return text;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const key of path) {
    found = typeof found === 'object' && found !== null ? Reflect.get(found, key) : undefined;
  }
  return found;
}
