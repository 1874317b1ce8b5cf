import { DEFAULT_RETRY_POLICY, REQUEST_RETRY_POLICY, RetryPolicy } from '../core/clock.js';
import { type Lazy, lazy } from '../core/lazy.js';
import type { ForeignEntry, ForeignLogReader, ForeignPosition } from '../log/foreign-segments.js';
import type { RedactionLevel } from '../redaction/known-names.js';
import { ExportWorker } from './export-worker.js';
import { DEFAULT_EXPORT_WORKER_OPTIONS, type ExportDeps, type ExportWorkerDeps } from './export-worker-options.js';
import type { ForeignRedaction } from './foreign-redaction.js';
import type { OpenedExport } from './open-destinations.js';
import { JsonlRunMapper } from './run-mapper.js';

/** The parts of the program that workers are made with. */
export interface CreateWorkerDeps extends ExportDeps {
  readonly foreign: ForeignLogReader;
  /** What the engine is called beside its known names. */
  readonly engineNames: readonly string[];
  /** Memory that the mappers of a destination's open runs may take, as estimated. */
  readonly maxOpenBytes: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** How long after the worker was made its mapper is loaded, in milliseconds. */
const LOAD_MAPPER_MS = 100;

/** The worker of a destination. @param onFailed is told of an error that ends it */
export function createWorker(
  opened: OpenedExport,
  deps: CreateWorkerDeps,
  onFailed: ExportWorkerDeps['onFailed'],
): ExportWorker {
  const { destination, mapping, isMapped = true, maxBacklogAgeMs } = opened;
  const mappers = lazy(async () => {
    const { mapperFactory } = await import('./mapping/otel-run-mapper.js');
    return mapperFactory(mapping);
  });
  // A start does not wait for it, and the first runs do not either: what they lag by at full load they catch up with late. Where it fails, the first run says why.
  if (isMapped) deps.clock.after(LOAD_MAPPER_MS, () => void mappers.get().catch(() => undefined));
  return new ExportWorker(
    {
      ...DEFAULT_EXPORT_WORKER_OPTIONS,
      eventHoldMs: mapping.eventHoldMs,
      maxBacklogAgeMs,
      maxOpenBytes: deps.maxOpenBytes,
    },
    {
      ...deps,
      destination,
      onFailed,
      foreign: new RedactedForeign(deps.foreign, mapping.redaction, deps),
      createMapper: async () => (isMapped ? (await mappers.get())() : new JsonlRunMapper()),
      createMapperNow: () => (isMapped ? mappers.value?.() : new JsonlRunMapper()),
      retryPolicy: new RetryPolicy(DEFAULT_RETRY_POLICY, deps.random),
      requestRetryPolicy: new RetryPolicy(REQUEST_RETRY_POLICY, deps.random),
    },
  );
}

/** So much telemetry of other services is read before others get a turn. */
const MAX_FOREIGN_BYTES = 256 * 1024;
const MAX_FOREIGN_ENTRIES = 64;

/** The telemetry of other services as a destination gets it: what in it is the engine's is redacted. */
class RedactedForeign implements ForeignLogReader {
  /** Loaded where it is needed: most exports are of the engine's telemetry alone. */
  private readonly redaction: Lazy<ForeignRedaction>;

  constructor(
    private readonly reader: ForeignLogReader,
    level: RedactionLevel,
    private readonly deps: Pick<CreateWorkerDeps, 'engineNames' | 'turns'>,
  ) {
    this.redaction = lazy(async () => {
      const { ForeignRedaction: Redaction } = await import('./foreign-redaction.js');
      return new Redaction(level, deps.engineNames);
    });
  }

  async *read(from?: ForeignPosition): AsyncIterable<ForeignEntry> {
    let [byteCount, entryCount] = [0, 0];
    for await (const entry of this.reader.read(from)) {
      byteCount += entry.body.length;
      entryCount += 1;
      // Some that nobody asks for are passed over without waiting for anything.
      if (byteCount > MAX_FOREIGN_BYTES || entryCount > MAX_FOREIGN_ENTRIES) {
        await this.deps.turns.next();
        [byteCount, entryCount] = [0, 0];
      }
      const redaction = await this.redaction.get();
      yield { ...entry, body: redaction.redact(entry.signal, entry.body) };
    }
  }

  end(): Promise<ForeignPosition | undefined> {
    return this.reader.end();
  }
}
