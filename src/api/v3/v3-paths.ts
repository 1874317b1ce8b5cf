import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { envelopeSchema, errorAnswers, jsonAnswer } from '../openapi/answers.js';
import { bodySchemas } from '../webhook/subscription-input.js';
import {
  eventSchema,
  listExtraSchema,
  partParameters,
  receiptSchema,
  subscriptionSchema,
  testSchema,
} from '../webhook/webhook-schemas.js';

const account = z.object({ accountId: z.string() });
const one = account.extend({ webhookId: z.string() });
const ALL = '/api/v3/accounts/{accountId}/webhooks/subscriptions';
const ONE = '/api/v3/accounts/{accountId}/webhooks/subscription/{webhookId}';
const tags = ['v3: webhooks'];
const body = (schema: z.ZodType) => ({ required: true, content: { 'application/json': { schema } } });
const subscription = (description: string) => jsonAnswer(envelopeSchema(subscriptionSchema), description);

/** What the router of the hosted platform's webhooks answers. */
export const V3_PATHS: ZodOpenApiPathsObject = {
  [ALL]: {
    get: {
      tags,
      summary: 'Webhook subscriptions, the oldest first',
      requestParams: { path: account, query: partParameters },
      responses: {
        200: jsonAnswer(envelopeSchema(z.array(subscriptionSchema), listExtraSchema), 'A page.'),
        ...errorAnswers(404),
      },
    },
    post: {
      tags,
      summary: 'Subscribe; the answer alone shows the signing secret',
      requestParams: { path: account },
      requestBody: body(bodySchemas.platform.create),
      responses: { 201: subscription('The subscription, with hmac_secret.'), ...errorAnswers(404, 413, 415) },
    },
  },
  [ONE]: {
    get: {
      tags,
      summary: 'A subscription',
      requestParams: { path: one },
      responses: { 200: subscription('The subscription.'), ...errorAnswers(404) },
    },
    put: {
      tags,
      summary: 'Change what is given',
      requestParams: { path: one },
      requestBody: body(bodySchemas.platform.change),
      responses: { 200: subscription('The subscription.'), ...errorAnswers(404, 413, 415) },
    },
    delete: {
      tags,
      summary: 'Remove a subscription with its log',
      requestParams: { path: one },
      responses: { 200: jsonAnswer(envelopeSchema(z.object({ id: z.string() })), 'Removed.'), ...errorAnswers(404) },
    },
  },
  [`${ONE}/test`]: {
    get: {
      tags,
      summary: 'Send a sample event now, and say what was answered',
      requestParams: { path: one },
      responses: { 200: jsonAnswer(envelopeSchema(testSchema), 'What came of it.'), ...errorAnswers(404) },
    },
  },
  [`${ONE}/events`]: {
    get: {
      tags,
      summary: 'Its events that are kept (of the last 7 days by default), the newest first',
      requestParams: { path: one, query: partParameters },
      responses: {
        200: jsonAnswer(envelopeSchema(z.array(eventSchema), listExtraSchema), 'A page.'),
        ...errorAnswers(404),
      },
    },
  },
  [`${ONE}/event/{eventId}/receipt`]: {
    get: {
      tags,
      summary: 'The last attempt to deliver an event, and all of them',
      requestParams: { path: one.extend({ eventId: z.string() }) },
      responses: {
        200: jsonAnswer(envelopeSchema(receiptSchema.extend({ attempts: z.array(receiptSchema) })), 'The receipt.'),
        ...errorAnswers(404),
      },
    },
  },
};
