import { type RedactionLevel, redactionFor } from '../../exporter/redaction/redaction-level.js';
import type { Redactor } from '../../exporter/redaction/redactor.js';
import { redactorKnowing } from '../../exporter/redaction/redactor-knowing.js';
import { ageText } from '../../run/measures/age-text.js';
import type { NodeMeasure } from '../../run/measures/node-measure.js';
import { readStepMeasures } from '../../run/measures/read-step-measures.js';
import { hasOwnWord } from '../../run/run-summary.js';
import type { RunTracker } from '../../run/run-tracker.js';
import type { RecordLogReader } from '../../sink/record-log.js';
import type { RunCatalog } from '../../store/run-catalog.js';
import type { NodeTrouble, RunStory, StoryTeller } from './run-story.js';
import { statusText } from './status-text.js';

/** What stories are made of. */
export interface MeasuredStoriesDeps {
  readonly catalog: Pick<RunCatalog, 'stepsOf'>;
  readonly tracker: Pick<RunTracker, 'find'>;
  readonly reader: RecordLogReader;
  readonly redaction: RedactionLevel;
  /** Where others reach the web port; `null` where it is not served. */
  readonly webUrl: () => string | null;
}

/** Nodes of each kind that a message names. */
const MAX_NAMED = 10;
/** A reason is cut here, in characters. */
const MAX_REASON_LENGTH = 300;

/** Reads stories of runs from their record logs, as far as they came; what leaves the machine is redacted as exports are. */
export class MeasuredStories implements StoryTeller {
  constructor(private readonly deps: MeasuredStoriesDeps) {}

  async tell(accountId: number, runId: number, statusMessage: string | null): Promise<RunStory> {
    const { catalog, redaction, webUrl } = this.deps;
    const steps = await catalog.stepsOf(accountId, [runId]);
    const commands = (await readStepMeasures(steps, this.deps)).map(({ command }) => command);
    const nodes = commands.flatMap((command) => command.nodes);
    const otherErrors = commands.flatMap((command) => command.messages);
    const redactor = redactorKnowing(
      redactionFor('anybodyElse', redaction),
      nodes.map(({ uniqueId }) => uniqueId),
    );
    const errors = nodes.filter(({ verdict }) => verdict === 'error');
    const bad = nodes.filter(({ verdict }) => verdict === 'failed');
    const failed = bad.filter(({ freshness }) => freshness === null);
    const stale = bad.filter(({ freshness }) => freshness !== null);
    const others = nodes.filter(hasOwnWord);
    const base = webUrl();
    return {
      errors: errors.slice(0, MAX_NAMED).map((node) => errorOf(node, redactor)),
      otherErrors: otherErrors.slice(0, MAX_NAMED).map((text) => redactor.text(text).slice(0, MAX_REASON_LENGTH)),
      failedTests: failed.slice(0, MAX_NAMED).map(testOf),
      staleSources: stale.slice(0, MAX_NAMED).map(sourceOf),
      otherOutcomes: others.slice(0, MAX_NAMED).map(({ uniqueId, verdict }) => ({ uniqueId, reason: verdict })),
      omittedCount: [errors, otherErrors, failed, stale, others].reduce(
        (sum, { length }) => sum + Math.max(0, length - MAX_NAMED),
        0,
      ),
      statusMessage: statusMessage === null ? null : statusText(statusMessage, redactor).slice(0, MAX_REASON_LENGTH),
      url: base === null ? null : `${base}/runs/${runId}`,
    };
  }
}

function errorOf({ uniqueId, message }: NodeMeasure, redactor: Redactor): NodeTrouble {
  return { uniqueId, reason: redactor.text(message ?? '').slice(0, MAX_REASON_LENGTH) };
}

function sourceOf({ uniqueId, freshness }: NodeMeasure): NodeTrouble {
  const age = freshness?.ageSeconds ?? null;
  return { uniqueId, reason: age === null ? '' : `last updated ${ageText(age)} ago` };
}

function testOf({ uniqueId, failingRows }: NodeMeasure): NodeTrouble {
  if (failingRows === null) return { uniqueId, reason: '' };
  return { uniqueId, reason: `${failingRows} failing ${failingRows === 1 ? 'row' : 'rows'}` };
}
