import { type Request, type Response, Router } from 'express';
import type { z } from 'zod';
import { type Clock, pause } from '../../core/clock.js';
import type { RecordLogReader } from '../../log/record-log.js';
import { formatRecordLine } from '../../record/record-line.js';
import type { RedactionLevel } from '../../redaction/known-names.js';
import type { Redactor } from '../../redaction/redactor.js';
import { API_PATH } from '../../run/api-path.js';
import type { InvocationNotes } from '../../run/invocation-notes.js';
import type { RunCatalog } from '../../storage/run-catalog.js';
import { isFinal, STATUS_NAMES } from '../../storage/state-tables.js';
import type { TraceCatalog } from '../../storage/trace-catalog.js';
import { ApiError } from '../api-error.js';
import { authorize, callerOf } from '../authenticator.js';
import { success } from '../envelope.js';
import { beginEventStream, HEARTBEAT_MS, writeOut } from '../event-stream.js';
import { parsedParameters } from '../parameters.js';
import { Permits, textRedactor, UNREDACTED, withPermit } from '../permissions.js';
import type { RunMeasures } from '../run-measures.js';
import { commandMeasures, comparisonOf } from './measures-answer.js';
import {
  formatPosition,
  type LogPosition,
  movedPosition,
  parsePosition,
  recordFilter,
  recordFilterSchema,
  recordPageSchema,
  sendRecordPage,
} from './record-pages.js';
import { runDocument, setAsideDocument } from './run-document.js';
import { type FoundRun, RunFinder } from './run-finder.js';

/** What the native API works with. */
export interface NativeApiDeps {
  readonly catalog: RunCatalog;
  readonly traces: TraceCatalog;
  readonly notes: Pick<InvocationNotes, 'listSetAside'>;
  readonly reader: RecordLogReader;
  readonly measures: Pick<RunMeasures, 'ofSteps'>;
  /** The setting; whose texts are whole is decided by `textRedactor`. */
  readonly redaction: RedactionLevel;
  readonly clock: Clock;
  /** Aborts when the program is stopping: streams end with it. */
  readonly stopping: AbortSignal;
}

/** Serves the native API: what the hosted platform's shapes have no fields for. */
export function nativeRouter(deps: NativeApiDeps): Router {
  const router = Router();
  const finder = new RunFinder(deps);
  const streams = new RunStreams(finder, deps);
  const permits = new Permits('requests for measures');
  const found = (request: Request, response: Response) =>
    finder.find(callerOf(response).accountId, String(request.params.id));
  const redactorFor = (response: Response) => textRedactor(callerOf(response), deps.redaction);
  const measuresOf = (the: FoundRun, response: Response, redactor: Redactor) =>
    withPermit(permits, response, () => commandMeasures(the, deps, redactor));
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
  // Records have what artifacts have: whole, or not at all.
  router.get(`${run}/records`, authorize('artifacts:read'), async (request, response) => {
    const page = parsedParameters(recordPageSchema, request.query);
    await sendRecordPage(await found(request, response), page, deps.reader, response);
  });
  router.get(`${run}/events`, authorize('artifacts:read'), async (request, response) => {
    const filter = parsedParameters(recordFilterSchema, request.query);
    const { accountId } = callerOf(response);
    await streams.follow(accountId, String(request.params.id), filter, request.get('Last-Event-ID'), response);
  });
  return router;
}

/** Clients that follow runs at once, of all accounts together. */
const MAX_CLIENTS = 32;
/** How often the ends of record logs are checked, in milliseconds. */
const POLL_MS = 250;
/** How often the run's status is checked, in milliseconds. */
const STATUS_MS = 1_000;
/** The id of the last event: a client that reconnects with it gets 204. */
const END_ID = 'end';

/**
 * Follows runs, as server-sent events: `run` when its status changes, `record` for each record, `end` when the run has ended
 * and everything was sent. Each client has only a position in the record logs: unsent records are not in
 * memory but on disk, so a slow client costs nothing, and one that reconnects with `Last-Event-ID` continues where it was.
 */
export class RunStreams {
  private clientCount = 0;

  constructor(
    private readonly finder: RunFinder,
    private readonly deps: Pick<NativeApiDeps, 'reader' | 'clock' | 'stopping'>,
  ) {}

  /** @throws ApiError 400, 404, 503 before anything is sent */
  async follow(
    accountId: number,
    name: string,
    filter: z.output<typeof recordFilterSchema>,
    lastEventId: string | undefined,
    response: Response,
  ): Promise<void> {
    const found = await this.finder.find(accountId, name);
    if (lastEventId === END_ID) {
      // To a browser this means not to come again.
      response.status(204).end();
      return;
    }
    const position =
      lastEventId === undefined || lastEventId === '' ? [] : parsePosition(lastEventId, found.traceIds.length);
    if (this.clientCount >= MAX_CLIENTS) {
      throw new ApiError(503, `${MAX_CLIENTS} clients are already following runs; try again later.`, {
        'Retry-After': '5',
      });
    }
    this.clientCount += 1;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    try {
      await beginEventStream(response);
      const stop = AbortSignal.any([gone.signal, this.deps.stopping]);
      await this.send(found, position, recordFilter(filter), response, stop);
    } finally {
      this.clientCount -= 1;
      response.end();
    }
  }

  private async send(
    first: FoundRun,
    from: LogPosition,
    isWanted: ReturnType<typeof recordFilter>,
    response: Response,
    stop: AbortSignal,
  ): Promise<void> {
    const { clock } = this.deps;
    let found = first;
    let position = from;
    let sent = '';
    let sentMs = clock.monotonicMs();
    let lookedMs = sentMs;
    while (!stop.aborted) {
      // Checked before the logs are read: once the run has ended, they are complete.
      const isOver = isFinal(found.run.status);
      const status = `${found.run.status} ${found.steps.map((step) => step.status)}`;
      if (status !== sent) {
        // Following records requires the permission to read artifacts.
        await writeOut(
          response,
          event('run', formatPosition(position), JSON.stringify(runDocument(found, UNREDACTED))),
        );
        sent = status;
        sentMs = clock.monotonicMs();
      }
      const at = await this.sendRecords(found, position, isWanted, response, stop);
      if (at !== position) sentMs = clock.monotonicMs();
      position = at;
      if (stop.aborted) return;
      if (isOver) {
        await writeOut(
          response,
          event('end', END_ID, JSON.stringify({ id: found.run.id, status: STATUS_NAMES[found.run.status] })),
        );
        return;
      }
      const nowMs = clock.monotonicMs();
      if (nowMs - sentMs >= HEARTBEAT_MS) {
        await writeOut(response, ': alive\n\n');
        sentMs = nowMs;
      }
      await pause(clock, POLL_MS, stop);
      if (clock.monotonicMs() - lookedMs >= STATUS_MS) {
        lookedMs = clock.monotonicMs();
        found = await this.finder.find(found.run.accountId, String(found.run.id));
      }
    }
  }

  /** @returns the position after the last record sent; `from` itself if there was none. */
  private async sendRecords(
    { traceIds }: FoundRun,
    from: LogPosition,
    isWanted: ReturnType<typeof recordFilter>,
    response: Response,
    stop: AbortSignal,
  ): Promise<LogPosition> {
    let position = from;
    for (const [trace, traceId] of traceIds.entries()) {
      const fromOffset = position[trace] ?? 0;
      if ((await this.deps.reader.lengthBytes(traceId)) <= fromOffset) continue;
      for await (const chunk of this.deps.reader.read(traceId, { fromOffset })) {
        let text = '';
        for (const logged of chunk) {
          position = movedPosition(position, trace, logged.endOffset);
          if (isWanted(logged)) text += event('record', formatPosition(position), formatRecordLine(logged.record));
        }
        await writeOut(response, text);
        if (stop.aborted) return position;
      }
    }
    return position;
  }
}

/** Makes an event of data of one line, which JSON is. */
function event(name: string, id: string, data: string): string {
  return `event: ${name}\nid: ${id}\ndata: ${data}\n\n`;
}
