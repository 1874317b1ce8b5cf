import { counted } from '../core/text.js';
import type { RecordLogReader } from '../log/record-log.js';
import { TextCache } from '../redaction/known-names.js';
import { type RedactionLevel, redactionFor } from '../redaction/redaction-policy.js';
import { learnNames, Redactor, statusText } from '../redaction/redactor.js';
import { ageText } from '../run/measures/age-text.js';
import type { NodeMeasure } from '../run/measures/node-measure.js';
import { readStepMeasures } from '../run/measures/read-measures.js';
import { hasOwnWord } from '../run/run-summary.js';
import type { RunTracker } from '../run/run-tracker.js';
import type { CatalogStep, RunCatalog } from '../storage/run-catalog.js';

/** A node that failed, or had another outcome worth a message, and the reason. */
export interface NodeTrouble {
  /** Such as `model.shop.orders`. */
  readonly uniqueId: string;
  /** Redacted; empty if unknown. */
  readonly reason: string;
}

/** The details of a run that a message adds to its event. */
export interface RunDetails {
  /** The first of those that failed with an error. */
  readonly errors: readonly NodeTrouble[];
  /** The first errors that name no node, of parsing and compiling among them, redacted. */
  readonly otherErrors: readonly string[];
  /** The first of the tests that failed, with counts of rows. */
  readonly failedTests: readonly NodeTrouble[];
  /** The first of the sources that are older than their limit for an error, with their age. */
  readonly staleSources: readonly NodeTrouble[];
  /** The first nodes with an outcome that this version does not know, with the engine's word for it. */
  readonly otherOutcomes: readonly NodeTrouble[];
  /** How many of all these are left out. */
  readonly omittedCount: number;
  /** Why the run did not end well, redacted. */
  readonly statusMessage: string | null;
  /** The page of the run; `null` if unknown. */
  readonly url: string | null;
}

/** What details are read from. */
export interface RunDetailsDeps {
  readonly catalog: {
    stepsOf(...of: Parameters<RunCatalog['stepsOf']>): Promise<readonly Pick<CatalogStep, 'invocations'>[]>;
  };
  readonly tracker: Pick<RunTracker, 'find'>;
  readonly reader: Pick<RecordLogReader, 'read'>;
  readonly redaction: RedactionLevel;
  /** Where others reach the web port; `null` where it is not served. */
  readonly webUrl: () => string | null;
}

/** Nodes of each kind that a message names. */
const MAX_NAMED = 10;
/** A reason is cut here, in characters, and earlier where those of its kind would have more than the second together. */
const MAX_REASON_LENGTH = 2_000;
const MAX_REASONS_LENGTH = 5_000;
/** Status messages that are remembered, in UTF-16 units of their keys, and the longest of those. */
const MESSAGES_LENGTH = 256 * 1024;
const MAX_MESSAGE_LENGTH = 4_096;

/** Reads the details of a run for messages from its record logs, as far as they have arrived. Texts are redacted as in exports, with the names in the run's records. */
export class RunDetailsReader {
  /** By run and message: a list of events asks for many at once, and again when it is reloaded. */
  private readonly statusMessages = new TextCache<string>(MESSAGES_LENGTH, MAX_MESSAGE_LENGTH);

  constructor(private readonly deps: RunDetailsDeps) {}

  /** @param statusMessage the event's reason for the run's failure */
  async read(accountId: number, runId: number, statusMessage: string | null): Promise<RunDetails> {
    const { catalog, webUrl } = this.deps;
    const steps = await catalog.stepsOf(accountId, [runId]);
    const redactor = this.newRedactor();
    const measured = await readStepMeasures(steps, this.deps, (record) => learnNames(record, redactor));
    const commands = measured.map(({ command }) => command);
    const nodes = commands.flatMap((command) => command.nodes);
    const otherErrors = commands.flatMap((command) => command.messages);
    const errors = nodes.filter(({ verdict }) => verdict === 'error');
    const bad = nodes.filter(({ verdict }) => verdict === 'failed');
    const failed = bad.filter(({ freshness }) => freshness === null);
    const stale = bad.filter(({ freshness }) => freshness !== null);
    const others = nodes.filter(hasOwnWord);
    const base = webUrl();
    return {
      errors: shortened(errors.slice(0, MAX_NAMED).map((node) => errorOf(node, redactor))),
      otherErrors: shortenedTexts(otherErrors.slice(0, MAX_NAMED).map((text) => redactor.text(text))),
      failedTests: shortened(failed.slice(0, MAX_NAMED).map((node) => testOf(node, redactor))),
      staleSources: stale.slice(0, MAX_NAMED).map(sourceOf),
      otherOutcomes: others.slice(0, MAX_NAMED).map(({ uniqueId, verdict }) => ({ uniqueId, reason: verdict })),
      omittedCount: [errors, otherErrors, failed, stale, others].reduce(
        (sum, { length }) => sum + Math.max(0, length - MAX_NAMED),
        0,
      ),
      statusMessage:
        statusMessage === null ? null : shortenedText(statusText(statusMessage, redactor), MAX_REASON_LENGTH),
      url: base === null ? null : `${base}/runs/${runId}`,
    };
  }

  /** Why a run did not end well, alone. */
  async statusMessage(accountId: number, runId: number, message: string): Promise<string> {
    const key = `${accountId} ${runId} ${message}`;
    const known = this.statusMessages.get(key);
    if (known !== undefined) return known;
    const redactor = this.newRedactor();
    if (statusText(message, redactor) === message) return message;
    const steps = await this.deps.catalog.stepsOf(accountId, [runId]);
    try {
      await this.learnWordsOf(message, steps, redactor);
    } catch {
      // A log that cannot be read or is gone does not delay a message: it shows the remaining details.
      return statusText(message, redactor);
    }
    const shown = statusText(message, redactor);
    this.statusMessages.set(key, shown);
    return shown;
  }

  /** Reads the record logs of steps, only while the message has words that are not known yet. */
  private async learnWordsOf(
    message: string,
    steps: readonly Pick<CatalogStep, 'invocations'>[],
    redactor: Redactor,
  ): Promise<void> {
    const traceIds = new Set(steps.flatMap(({ invocations }) => invocations.map(({ traceId }) => traceId)));
    for (const traceId of traceIds) {
      for await (const chunk of this.deps.reader.read(traceId, { fromOffset: 0 })) {
        for (const { record } of chunk) learnNames(record, redactor);
        if (statusText(message, redactor) === message) return;
      }
    }
  }

  private newRedactor(): Redactor {
    return new Redactor(redactionFor('anybodyElse', this.deps.redaction));
  }
}

function shortened(troubles: readonly NodeTrouble[]): readonly NodeTrouble[] {
  const reasons = shortenedTexts(troubles.map(({ reason }) => reason));
  return troubles.map(({ uniqueId }, index) => ({ uniqueId, reason: reasons[index] ?? '' }));
}

/** Cuts the longest: what short ones leave of the room is theirs. */
function shortenedTexts(texts: readonly string[]): readonly string[] {
  const lengths = texts.map(({ length }) => Math.min(length, MAX_REASON_LENGTH)).sort((a, b) => a - b);
  let limit = MAX_REASON_LENGTH;
  let room = MAX_REASONS_LENGTH;
  for (const [index, length] of lengths.entries()) {
    const share = Math.floor(room / (lengths.length - index));
    if (length > share) {
      limit = share;
      break;
    }
    room -= length;
  }
  return texts.map((text) => shortenedText(text, limit));
}

function shortenedText(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}

function errorOf({ uniqueId, message }: NodeMeasure, redactor: Redactor): NodeTrouble {
  return { uniqueId, reason: redactor.text(message ?? '') };
}

function sourceOf({ uniqueId, freshness }: NodeMeasure): NodeTrouble {
  const age = freshness?.ageSeconds ?? null;
  return { uniqueId, reason: age === null ? '' : `last updated ${ageText(age)} ago` };
}

/** A test whose query failed counts as one failing row; its message has the reason. */
function testOf({ uniqueId, failingRows, message }: NodeMeasure, redactor: Redactor): NodeTrouble {
  const rows = failingRows === null ? '' : counted(failingRows, 'failing row');
  return { uniqueId, reason: [rows, redactor.text(message ?? '')].filter((part) => part !== '').join('; ') };
}
