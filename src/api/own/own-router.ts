import express, { type Request, type Response, Router } from 'express';
import type { Redactor } from '../../exporter/redaction/redactor.js';
import { QueryPlaces } from '../../query/query-places.js';
import { API_PATH } from '../../run/api-path.js';
import { authorize, callerOf } from '../authenticate.js';
import { success } from '../envelope.js';
import { goneOf } from '../gone-of.js';
import { inPlace } from '../in-place.js';
import { textRedactor } from '../text-redactor.js';
import { commandMeasures, comparisonOf } from './measures-answer.js';
import type { OwnApiDeps } from './own-api-deps.js';
import { answerQuery, querySchema, toApiError } from './query-answer.js';
import { parsedParameters, recordFilterSchema } from './record-filter.js';
import { recordPageSchema, sendRecordPage } from './record-pages.js';
import { runDocument, setAsideDocument } from './run-document.js';
import { type FoundRun, RunFinder } from './run-finder.js';
import { RunStreams } from './run-stream.js';

/** The largest body of `POST /query`: the longest SQL, each character four bytes. */
const MAX_QUERY_BYTES = 512 * 1024;

/** The API of run-bridge's own: what the hosted platform's shapes have no place for. */
export function ownRouter(deps: OwnApiDeps): Router {
  const router = Router();
  const finder = new RunFinder(deps);
  const streams = new RunStreams(finder, deps);
  const places = new QueryPlaces('requests for measures');
  const found = (request: Request, response: Response) =>
    finder.find(callerOf(response).accountId, String(request.params.id));
  const redactorFor = (response: Response) => textRedactor(callerOf(response), deps.redaction);
  const measuresOf = (the: FoundRun, response: Response, redactor: Redactor) =>
    inPlace(places, response, () => commandMeasures(the, deps, redactor), toApiError);
  const run = `${API_PATH}/runs/:id`;

  router.get(`${API_PATH}/set-aside-runs`, authorize('runs:read'), async (_request, response) => {
    const runs = await deps.notes.listSetAside(callerOf(response).accountId);
    response.json(success(runs.map((one) => setAsideDocument(one, redactorFor(response)))));
  });
  router.get(run, authorize('runs:read'), async (request, response) => {
    response.json(success(runDocument(await found(request, response), redactorFor(response))));
  });
  router.get(`${run}/nodes`, authorize('runs:read'), async (request, response) => {
    const the = await found(request, response);
    const redactor = redactorFor(response);
    const commands = await measuresOf(the, response, redactor);
    const nodes = commands.flatMap(({ trace_id, index, command, nodes }) =>
      nodes.map((node) => ({ trace_id, command_index: index, command, ...node })),
    );
    const shown = nodes.map(({ message, ...node }) => ({
      ...node,
      message: message === null ? null : redactor.text(message),
    }));
    response.json(success(shown));
  });
  router.get(`${run}/measures`, authorize('runs:read'), async (request, response) => {
    const the = await found(request, response);
    const redactor = redactorFor(response);
    const all = await measuresOf(the, response, redactor);
    const commands = all.map(({ nodes: _nodes, raw_command, status_message, messages, ...command }) => ({
      ...command,
      raw_command: raw_command === null ? null : redactor.command(raw_command),
      status_message: status_message === null ? null : redactor.text(status_message),
      messages: messages.map((message) => redactor.text(message)),
    }));
    response.json(success({ id: the.run.id, comparison: await comparisonOf(the, deps), commands }));
  });
  // Records are what the artifacts hold: whole, or not at all.
  router.get(`${run}/records`, authorize('artifacts:read'), async (request, response) => {
    const page = parsedParameters(recordPageSchema, request.query);
    await sendRecordPage(await found(request, response), page, deps.reader, response);
  });
  router.get(`${run}/events`, authorize('artifacts:read'), async (request, response) => {
    const filter = parsedParameters(recordFilterSchema, request.query);
    const { accountId } = callerOf(response);
    await streams.follow(accountId, String(request.params.id), filter, request.get('Last-Event-ID'), response);
  });
  router.post(
    `${API_PATH}/query`,
    authorize('query'),
    express.json({ limit: MAX_QUERY_BYTES }),
    async (request, response) => {
      const body = parsedParameters(querySchema, request.body ?? {});
      response.json(success(await answerQuery(callerOf(response).accountId, body, deps, goneOf(response))));
    },
  );
  return router;
}
