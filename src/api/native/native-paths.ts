import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { API_PATH } from '../../run/api-path.js';
import { answersWith, errorAnswers } from '../openapi/answers.js';
import { measuresSchema, nodesSchema } from './measures-answer.js';
import { recordFilterSchema, recordPageSchema } from './record-pages.js';
import { runSchema, setAsideSchema } from './run-document.js';

const path = z.object({
  id: z.string().meta({ description: "the run's number, or a trace or invocation id of one of its commands" }),
});
const RUN = `${API_PATH}/runs/{id}`;
const TAGS = ['run-bridge: runs'];

/** A record; docs/reference/records.md has its keys. */
const recordSchema = z
  .looseObject({
    record_type: z.enum(['SpanStart', 'SpanEnd', 'LogRecord']),
    trace_id: z.string(),
    event_type: z.string(),
    severity_number: z.number().int(),
    attributes: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'Record' });

/** What `nativeRouter` answers. */
export const NATIVE_PATHS: ZodOpenApiPathsObject = {
  [RUN]: {
    get: {
      tags: TAGS,
      summary: 'A run, its steps and their commands',
      requestParams: { path },
      responses: answersWith(runSchema, 'The run.', [404]),
    },
  },
  [`${RUN}/nodes`]: {
    get: {
      tags: TAGS,
      summary: 'Its nodes in each phase, as far as it came: outcome, work, waiting, warehouse time',
      requestParams: { path },
      responses: answersWith(nodesSchema, 'Nodes of all its commands.', [404]),
    },
  },
  [`${RUN}/measures`]: {
    get: {
      tags: TAGS,
      summary: 'Its totals, time by phase, critical path, slowest nodes, and how long earlier runs took',
      requestParams: { path },
      responses: answersWith(measuresSchema, 'Measures.', [404]),
    },
  },
  [`${RUN}/records`]: {
    get: {
      tags: TAGS,
      summary: 'Its records in the order in which they came, a page at a time',
      requestParams: { path, query: recordPageSchema },
      responses: answersWith(
        z.array(recordSchema),
        'A page; it may have fewer records than asked for, and still have a next one.',
        [404],
        z.object({
          count: z.number().int(),
          next_cursor: z.string().nullable().meta({ description: 'null where there is no more for now' }),
        }),
      ),
    },
  },
  [`${RUN}/events`]: {
    get: {
      tags: TAGS,
      summary: 'Its records as they come, as server-sent events: run, record, end',
      requestParams: {
        path,
        query: recordFilterSchema,
        header: z.object({ 'Last-Event-ID': z.string().optional() }),
      },
      responses: {
        200: { description: 'Events until the run is over.', content: { 'text/event-stream': { schema: z.string() } } },
        204: { description: 'All events were sent: Last-Event-ID was that of the last one.' },
        ...errorAnswers(404),
      },
    },
  },
  [`${API_PATH}/set-aside-runs`]: {
    get: {
      tags: TAGS,
      summary: 'Runs that the database can never keep, the last 100: only their record logs tell of them',
      responses: answersWith(z.array(setAsideSchema), 'Mostly there is none.', []),
    },
  },
};
