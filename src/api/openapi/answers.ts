import { z } from 'zod';
import type { ZodOpenApiResponsesObject } from 'zod-openapi';

const statusSchema = z
  .object({
    code: z.number().int(),
    is_success: z.boolean(),
    user_message: z.string(),
    developer_message: z.string().nullable(),
  })
  .meta({ id: 'Status' });

/** An error in the envelope. */
const errorSchema = z.object({ status: statusSchema, data: z.null() }).meta({ id: 'Error' });

/** Returns the envelope of a response; `extra` for a list. */
export function envelopeSchema<T extends z.ZodType>(data: T, extra?: z.ZodType) {
  return z.object({ status: statusSchema, data, ...(extra === undefined ? {} : { extra }) });
}

/** Returns an answer in JSON. */
export function jsonAnswer(schema: z.ZodType, description: string) {
  return { description, content: { 'application/json': { schema } } };
}

const ERRORS = {
  400: 'The request cannot be read; user_message says what is wrong with it.',
  401: 'No token, or one that is not good.',
  403: 'The token may not do that.',
  404: 'Not there, or of another account.',
  408: 'It took longer than it may.',
  409: 'Not possible as things stand.',
  413: 'More than the limit.',
  415: 'The body is of a kind that is not taken.',
  416: 'No part of the file is asked for.',
  429: 'Too many failed tries; Retry-After says when to try again.',
  500: 'A fault of the bridge; its log says why.',
  501: 'Not part of this installation.',
  503: 'Just now not possible; Retry-After says when to try again.',
  507: 'The disk or the bucket is full.',
} as const;

type ErrorStatus = keyof typeof ERRORS;

/** Answers that are errors in the envelope, each for its usual reason. 400, 401, 403, 429, 500 and 503 come by themselves. */
export function errorAnswers(...statuses: readonly ErrorStatus[]): ZodOpenApiResponsesObject {
  // Any path may be one that cannot be decoded, and any request may find the state out of reach.
  const all = [...new Set([...statuses, 400, 401, 403, 429, 500, 503] as const)].sort();
  return Object.fromEntries(all.map((status) => [status, jsonAnswer(errorSchema, ERRORS[status])]));
}

/** Returns the answers of a route: its data in the envelope, or an error in it. @param extra what a list has beside its data */
export function answersWith(
  data: z.ZodType,
  description: string,
  errors: readonly ErrorStatus[],
  extra?: z.ZodType,
): ZodOpenApiResponsesObject {
  return { 200: jsonAnswer(envelopeSchema(data, extra), description), ...errorAnswers(...errors) };
}
