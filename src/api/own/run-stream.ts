import type { Response } from 'express';
import type { z } from 'zod';
import { pause } from '../../component/pause.js';
import { redactionFor } from '../../exporter/redaction/redaction-policy.js';
import { Redactor } from '../../exporter/redaction/redactor.js';
import { formatRecordLine } from '../../record/record-line.js';
import { isFinal } from '../../store/run-status.js';
import { ApiError } from '../api-error.js';
import { formatPlace, type LogPlace, movedPlace, parsePlace } from './log-place.js';
import type { OwnApiDeps } from './own-api-deps.js';
import { recordFilter, type recordFilterSchema } from './record-filter.js';
import { runDocument, statusName } from './run-document.js';
import type { FoundRun, RunFinder } from './run-finder.js';
import { writeOut } from './write-out.js';

/** Clients that follow runs at once, of all accounts together. */
const MAX_CLIENTS = 32;
/** How often the ends of record logs are looked at, in milliseconds. */
const POLL_MS = 250;
/** How often the run's status is looked at, in milliseconds. */
const STATUS_MS = 1_000;
/** A stream says at least so often that it is alive, in milliseconds. */
const HEARTBEAT_MS = 15_000;
/** When a client comes again after the connection was lost, in milliseconds. */
const RETRY_MS = 2_000;
/** Who may follow records may read artifacts. */
const WHOLE = new Redactor(redactionFor('artifactReader', 'literals'));
/** The id of the last event: whoever comes again with it is told that there is no more. */
const END_ID = 'end';

/**
 * Follows runs, as server-sent events: `run` when its status changes, `record` for each record, `end` when the run is over
 * and everything was told. Each client has a place in the record logs and nothing else: what it has not taken is not in
 * memory but on disk, so a slow one costs nothing, and one that comes again with `Last-Event-ID` goes on where it was.
 */
export class RunStreams {
  private clientCount = 0;

  constructor(
    private readonly finder: RunFinder,
    private readonly deps: Pick<OwnApiDeps, 'reader' | 'clock' | 'stopping'>,
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
    const place = lastEventId === undefined || lastEventId === '' ? [] : parsePlace(lastEventId, found.traceIds.length);
    if (this.clientCount >= MAX_CLIENTS) {
      throw new ApiError(503, `${MAX_CLIENTS} clients follow runs already; try again later.`, { 'Retry-After': '5' });
    }
    this.clientCount += 1;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    try {
      response
        .status(200)
        .set({ 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
      await writeOut(response, `retry: ${RETRY_MS}\n\n`);
      const stop = AbortSignal.any([gone.signal, this.deps.stopping]);
      await this.tell(found, place, recordFilter(filter), response, stop);
    } finally {
      this.clientCount -= 1;
      response.end();
    }
  }

  private async tell(
    first: FoundRun,
    from: LogPlace,
    isWanted: ReturnType<typeof recordFilter>,
    response: Response,
    stop: AbortSignal,
  ): Promise<void> {
    const { clock } = this.deps;
    let found = first;
    let place = from;
    let told = '';
    let saidMs = clock.monotonicMs();
    let lookedMs = saidMs;
    while (!stop.aborted) {
      // Looked at before the logs are read: once it is over, what is read then is all there is.
      const isOver = isFinal(found.run.status);
      const status = `${found.run.status} ${found.steps.map((step) => step.status)}`;
      if (status !== told) {
        await writeOut(response, event('run', formatPlace(place), JSON.stringify(runDocument(found, WHOLE))));
        told = status;
        saidMs = clock.monotonicMs();
      }
      const at = await this.tellRecords(found, place, isWanted, response, stop);
      if (at !== place) saidMs = clock.monotonicMs();
      place = at;
      if (stop.aborted) return;
      if (isOver) {
        await writeOut(
          response,
          event('end', END_ID, JSON.stringify({ id: found.run.id, status: statusName(found.run.status) })),
        );
        return;
      }
      const nowMs = clock.monotonicMs();
      if (nowMs - saidMs >= HEARTBEAT_MS) {
        await writeOut(response, ': alive\n\n');
        saidMs = nowMs;
      }
      await pause(clock, POLL_MS, stop);
      if (clock.monotonicMs() - lookedMs >= STATUS_MS) {
        lookedMs = clock.monotonicMs();
        found = await this.finder.find(found.run.accountId, String(found.run.id));
      }
    }
  }

  /** @returns the place behind the last record that was told; `from` itself where there was none. */
  private async tellRecords(
    { traceIds }: FoundRun,
    from: LogPlace,
    isWanted: ReturnType<typeof recordFilter>,
    response: Response,
    stop: AbortSignal,
  ): Promise<LogPlace> {
    let place = from;
    for (const [trace, traceId] of traceIds.entries()) {
      const fromOffset = place[trace] ?? 0;
      if ((await this.deps.reader.lengthBytes(traceId)) <= fromOffset) continue;
      for await (const chunk of this.deps.reader.read(traceId, { fromOffset })) {
        let text = '';
        for (const logged of chunk) {
          place = movedPlace(place, trace, logged.endOffset);
          if (isWanted(logged)) text += event('record', formatPlace(place), formatRecordLine(logged.record));
        }
        await writeOut(response, text);
        if (stop.aborted) return place;
      }
    }
    return place;
  }
}

/** Data of one line, which JSON is. */
function event(name: string, id: string, data: string): string {
  return `event: ${name}\nid: ${id}\ndata: ${data}\n\n`;
}
