import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { API_PATH } from '../../run/api-path.js';
import { envelopeSchema, errorAnswers, jsonAnswer } from '../openapi/answers.js';
import { bodySchemas } from '../webhook/subscription-input.js';
import { listExtraSchema, ownSubscriptionSchema, partParameters } from '../webhook/webhook-schemas.js';
import { previewSchema, replaySchema, rotationSchema } from './webhook-router.js';

const path = z.object({ webhookId: z.string() });
const ALL = `${API_PATH}/webhooks`;
const ONE = `${ALL}/{webhookId}`;
const tags = ['run-bridge: webhooks'];
const body = (schema: z.ZodType) => ({ required: true, content: { 'application/json': { schema } } });
const subscription = (description: string) => jsonAnswer(envelopeSchema(ownSubscriptionSchema), description);

/** What `ownWebhookRouter` answers. */
export const OWN_WEBHOOK_PATHS: ZodOpenApiPathsObject = {
  [ALL]: {
    get: {
      tags,
      summary: 'Webhook subscriptions with all their settings, the oldest first',
      requestParams: { query: partParameters },
      responses: {
        200: jsonAnswer(envelopeSchema(z.array(ownSubscriptionSchema), listExtraSchema), 'A page.'),
        ...errorAnswers(),
      },
    },
    post: {
      tags,
      summary: 'Subscribe, also with a chat or by mail; the answer alone shows the signing secret',
      requestBody: body(bodySchemas.own.create),
      responses: { 201: subscription('The subscription, with hmac_secret.'), ...errorAnswers(413, 415) },
    },
  },
  [`${ALL}/replay`]: {
    post: {
      tags,
      summary: 'Deliver an event again, or all that failed or were skipped since a time',
      requestBody: body(replaySchema),
      responses: {
        200: jsonAnswer(envelopeSchema(z.object({ replayed_count: z.int() })), 'How many are due again.'),
        ...errorAnswers(404, 413, 415),
      },
    },
  },
  [ONE]: {
    get: {
      tags,
      summary: 'A subscription',
      requestParams: { path },
      responses: { 200: subscription('The subscription.'), ...errorAnswers(404) },
    },
    patch: {
      tags,
      summary: 'Change what is given',
      requestParams: { path },
      requestBody: body(bodySchemas.own.change),
      responses: { 200: subscription('The subscription.'), ...errorAnswers(404, 413, 415) },
    },
    delete: {
      tags,
      summary: 'Remove a subscription with its log',
      requestParams: { path },
      responses: { 200: jsonAnswer(envelopeSchema(z.object({ id: z.string() })), 'Removed.'), ...errorAnswers(404) },
    },
  },
  [`${ONE}/secret`]: {
    post: {
      tags,
      summary: 'A new signing secret, beside the old one for a while',
      requestParams: { path },
      requestBody: { content: { 'application/json': { schema: rotationSchema } } },
      responses: { 200: subscription('The subscription, with the new hmac_secret.'), ...errorAnswers(404, 413, 415) },
    },
  },
  [`${ONE}/old-secret`]: {
    delete: {
      tags,
      summary: 'The old secret signs nothing any more',
      requestParams: { path },
      responses: { 200: subscription('The subscription.'), ...errorAnswers(404) },
    },
  },
  [`${ONE}/preview`]: {
    get: {
      tags,
      summary: 'The payload that a run gives',
      requestParams: { path, query: previewSchema },
      responses: {
        200: jsonAnswer(envelopeSchema(z.looseObject({ eventType: z.string() })), 'The payload.'),
        ...errorAnswers(404),
      },
    },
  },
};
