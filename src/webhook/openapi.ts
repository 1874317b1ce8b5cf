import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { envelopeSchema, errorAnswers, jsonAnswer } from '../api/openapi/answers.js';
import { API_PATH } from '../run/api-path.js';
import {
  bodySchemas,
  eventSchema,
  listExtraSchema,
  nativeSubscriptionSchema,
  partParameters,
  previewSchema,
  receiptSchema,
  replaySchema,
  rotationSchema,
  subscriptionSchema,
  testSchema,
} from './api-schemas.js';

const account = z.object({ accountId: z.string() });
const one = account.extend({ webhookId: z.string() });
const PLATFORM_ALL = '/api/v3/accounts/{accountId}/webhooks/subscriptions';
const PLATFORM_ONE = '/api/v3/accounts/{accountId}/webhooks/subscription/{webhookId}';
const PLATFORM_EVENT = '/api/v3/accounts/{accountId}/webhooks/event/{eventId}';
const PLATFORM_TAGS = ['v3: webhooks'];
const body = (schema: z.ZodType) => ({ required: true, content: { 'application/json': { schema } } });
const platformSubscription = (description: string) => jsonAnswer(envelopeSchema(subscriptionSchema), description);
const receiptList = {
  200: jsonAnswer(envelopeSchema(z.array(receiptSchema)), 'A receipt for each attempt.'),
  ...errorAnswers(404),
};

/** What the hosted platform's API answers. */
const PLATFORM_PATHS: ZodOpenApiPathsObject = {
  [PLATFORM_ALL]: {
    get: {
      tags: PLATFORM_TAGS,
      summary: 'Webhook subscriptions, the oldest first',
      requestParams: { path: account, query: partParameters },
      responses: {
        200: jsonAnswer(envelopeSchema(z.array(subscriptionSchema), listExtraSchema), 'A page.'),
        ...errorAnswers(404),
      },
    },
    post: {
      tags: PLATFORM_TAGS,
      summary: 'Subscribe; the answer alone shows the signing secret',
      requestParams: { path: account },
      requestBody: body(bodySchemas.platform.create),
      responses: { 201: platformSubscription('The subscription, with hmac_secret.'), ...errorAnswers(404, 413, 415) },
    },
  },
  [PLATFORM_ONE]: {
    get: {
      tags: PLATFORM_TAGS,
      summary: 'A subscription',
      requestParams: { path: one },
      responses: { 200: platformSubscription('The subscription.'), ...errorAnswers(404) },
    },
    put: {
      tags: PLATFORM_TAGS,
      summary: 'Change the given fields',
      requestParams: { path: one },
      requestBody: body(bodySchemas.platform.change),
      responses: { 200: platformSubscription('The subscription.'), ...errorAnswers(404, 413, 415) },
    },
    delete: {
      tags: PLATFORM_TAGS,
      summary: 'Remove a subscription with its log',
      requestParams: { path: one },
      responses: { 200: jsonAnswer(envelopeSchema(z.object({ id: z.string() })), 'Removed.'), ...errorAnswers(404) },
    },
  },
  [`${PLATFORM_ONE}/test`]: {
    get: {
      tags: PLATFORM_TAGS,
      summary: 'Send a sample event now, and say what was answered',
      requestParams: { path: one },
      responses: { 200: jsonAnswer(envelopeSchema(testSchema), 'The result.'), ...errorAnswers(404) },
    },
  },
  [`${PLATFORM_ONE}/events`]: {
    get: {
      tags: PLATFORM_TAGS,
      summary: 'Its events that are kept (of the last 7 days by default), the newest first',
      requestParams: { path: one, query: partParameters },
      responses: {
        200: jsonAnswer(envelopeSchema(z.array(eventSchema), listExtraSchema), 'A page.'),
        ...errorAnswers(404),
      },
    },
  },
  [`${PLATFORM_ONE}/event/{eventId}/receipt`]: {
    get: {
      tags: PLATFORM_TAGS,
      summary: 'The attempts to deliver an event, the oldest first',
      requestParams: { path: one.extend({ eventId: z.string() }) },
      responses: receiptList,
    },
  },
  [PLATFORM_EVENT]: {
    get: {
      tags: PLATFORM_TAGS,
      summary: 'An event, whichever subscription it is for',
      requestParams: { path: account.extend({ eventId: z.string() }) },
      responses: { 200: jsonAnswer(envelopeSchema(eventSchema), 'The event.'), ...errorAnswers(404) },
    },
  },
  [`${PLATFORM_EVENT}/receipts`]: {
    get: {
      tags: PLATFORM_TAGS,
      summary: 'The attempts to deliver it, the oldest first',
      requestParams: { path: account.extend({ eventId: z.string() }) },
      responses: receiptList,
    },
  },
  '/api/v3/accounts/{accountId}/webhooks/receipt/{receiptId}': {
    get: {
      tags: PLATFORM_TAGS,
      summary: 'One attempt',
      requestParams: { path: account.extend({ receiptId: z.string() }) },
      responses: { 200: jsonAnswer(envelopeSchema(receiptSchema), 'The receipt.'), ...errorAnswers(404) },
    },
  },
};

const path = z.object({ webhookId: z.string() });
const NATIVE_ALL = `${API_PATH}/webhooks`;
const NATIVE_ONE = `${NATIVE_ALL}/{webhookId}`;
const NATIVE_TAGS = ['run-bridge: webhooks'];
const nativeSubscription = (description: string) => jsonAnswer(envelopeSchema(nativeSubscriptionSchema), description);

/** What the native API answers. */
const NATIVE_PATHS: ZodOpenApiPathsObject = {
  [NATIVE_ALL]: {
    get: {
      tags: NATIVE_TAGS,
      summary: 'Webhook subscriptions with all their settings, the oldest first',
      requestParams: { query: partParameters },
      responses: {
        200: jsonAnswer(envelopeSchema(z.array(nativeSubscriptionSchema), listExtraSchema), 'A page.'),
        ...errorAnswers(),
      },
    },
    post: {
      tags: NATIVE_TAGS,
      summary: 'Subscribe, also with a chat or by mail; the answer alone shows the signing secret',
      requestBody: body(bodySchemas.native.create),
      responses: { 201: nativeSubscription('The subscription, with hmac_secret.'), ...errorAnswers(413, 415) },
    },
  },
  [`${NATIVE_ALL}/replay`]: {
    post: {
      tags: NATIVE_TAGS,
      summary: 'Deliver an event again, or all that failed or were skipped since a time',
      requestBody: body(replaySchema),
      responses: {
        200: jsonAnswer(envelopeSchema(z.object({ replayed_count: z.int() })), 'How many are due again.'),
        ...errorAnswers(404, 413, 415),
      },
    },
  },
  [NATIVE_ONE]: {
    get: {
      tags: NATIVE_TAGS,
      summary: 'A subscription',
      requestParams: { path },
      responses: { 200: nativeSubscription('The subscription.'), ...errorAnswers(404) },
    },
    patch: {
      tags: NATIVE_TAGS,
      summary: 'Change the given fields',
      requestParams: { path },
      requestBody: body(bodySchemas.native.change),
      responses: { 200: nativeSubscription('The subscription.'), ...errorAnswers(404, 413, 415) },
    },
    delete: {
      tags: NATIVE_TAGS,
      summary: 'Remove a subscription with its log',
      requestParams: { path },
      responses: { 200: jsonAnswer(envelopeSchema(z.object({ id: z.string() })), 'Removed.'), ...errorAnswers(404) },
    },
  },
  [`${NATIVE_ONE}/secret`]: {
    post: {
      tags: NATIVE_TAGS,
      summary: 'A new signing secret, beside the old one for a while',
      requestParams: { path },
      requestBody: { content: { 'application/json': { schema: rotationSchema } } },
      responses: {
        200: nativeSubscription('The subscription, with the new hmac_secret.'),
        ...errorAnswers(404, 413, 415),
      },
    },
  },
  [`${NATIVE_ONE}/old-secret`]: {
    delete: {
      tags: NATIVE_TAGS,
      summary: 'The old secret signs nothing any more',
      requestParams: { path },
      responses: { 200: nativeSubscription('The subscription.'), ...errorAnswers(404) },
    },
  },
  [`${NATIVE_ONE}/preview`]: {
    get: {
      tags: NATIVE_TAGS,
      summary: 'The payload that a run gives',
      requestParams: { path, query: previewSchema },
      responses: {
        200: jsonAnswer(envelopeSchema(z.looseObject({})), 'The body; as a text in `body` where it is no JSON.'),
        ...errorAnswers(404),
      },
    },
  },
};

/** What the routers of webhooks answer. */
export const WEBHOOK_PATHS: ZodOpenApiPathsObject = { ...PLATFORM_PATHS, ...NATIVE_PATHS };
