import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { snakeCased } from '../core/snake-case.js';
import { UNKNOWN_RESOURCE } from '../record/attributes.js';
import { invocationIdOf } from '../record/telemetry-record.js';
import type { StepDocument, StepPositionDocument } from './parse-run.js';
import { endingDocument } from './step-documents.js';
import type { InvocationStep, InvocationSummary, RunSummary } from './verdict.js';

/**
 * Returns a run's summary as JSON: the content of `run.json` and of the run's row. `job` is
 * the job of the first of its invocations; `null` if unknown.
 * @param indent spaces per level; none when left out
 */
export function formatRun(run: RunSummary, indent?: number): string {
  const document = {
    trace_id: run.traceId,
    invocation_id: invocationIdOf(run.traceId),
    state: run.state,
    first_seen_unix_ms: run.firstSeenUnixMs,
    last_seen_unix_ms: run.lastSeenUnixMs,
    log_bytes: run.logBytes,
    resource: run.invocations[0]?.resource ?? UNKNOWN_RESOURCE,
    job: jobOf(run),
    steps: run.invocations.map(stepOf),
  };
  return JSON.stringify(document, wellFormed, indent);
}

/** Puts U+FFFD in place of half a surrogate pair, in values and names: other readers take no JSON that has one. */
function wellFormed(_key: string, value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const isFine = Object.keys(value).every((name) => name.isWellFormed());
  return isFine ? value : Object.fromEntries(Object.entries(value).map(([name, one]) => [name.toWellFormed(), one]));
}

/** Returns an invocation's summary as text: equal summaries give equal texts. */
export function formatStep(invocation: InvocationSummary): string {
  return JSON.stringify(stepOf(invocation));
}

function jobOf({ invocations }: RunSummary) {
  const step = invocations.find((invocation) => invocation.step !== null)?.step;
  if (step === undefined || step === null) return null;
  const { job: name, environment, project, reason, runId: run_id, runKey: run_key } = step;
  return { name, environment, project, reason, run_id, run_key };
}

function stepOf(invocation: InvocationSummary): StepDocument {
  const { attributes, scope } = invocation.resource;
  return {
    index: invocation.index,
    span_id: invocation.spanId,
    process_span_id: invocation.processSpanId,
    outer_parent_span_id: invocation.outerParentSpanId,
    has_invocation_end: invocation.hasInvocationEnd,
    has_process_end: invocation.hasProcessEnd,
    is_ambiguous: invocation.isAmbiguous,
    command: invocation.command,
    raw_command: invocation.rawCommand,
    resource: {
      attributes: Object.fromEntries(
        Object.entries(attributes).map(([name, value]) => [name, typeof value === 'object' ? [...value] : value]),
      ),
      scope,
    },
    start_time_unix_nano: String(invocation.startTimeUnixNano),
    end_time_unix_nano: String(invocation.endTimeUnixNano),
    verdict: invocation.verdict,
    status_message: invocation.statusMessage,
    total_errors: invocation.totalErrors,
    total_warnings: invocation.totalWarnings,
    node_counts: invocation.nodeCounts,
    record_count: invocation.recordCount,
    parquet_file: invocation.parquetFile,
    step: invocation.step && positionOf(invocation.step),
  };
}

function positionOf({ stepId, stepIndex, ending, ...step }: InvocationStep): StepPositionDocument {
  return { id: stepId, index: stepIndex, ...snakeCased(step), ending: ending && endingDocument(ending) };
}

/** Writes `run.json` beside a run's record log, atomically by renaming. */
export class RunFile {
  /** @param dataFolder the data folder; runs are in its `runs/` */
  constructor(private readonly dataFolder: string) {}

  /** @throws when the file cannot be written. */
  async write(run: RunSummary): Promise<void> {
    const folder = join(this.dataFolder, 'runs', run.traceId);
    const path = join(folder, 'run.json');
    const partial = `${path}.partial`;
    const file = await open(partial, 'w');
    try {
      await file.writeFile(`${formatRun(run, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(partial, path);
  }
}
