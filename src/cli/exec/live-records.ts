import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CommandRecords } from '../../source/command-records.js';
import { HeldRequests } from '../../source/held-requests.js';
import { JsonlTail } from '../../source/jsonl-tail.js';
import { hashOfHead, type TailPosition } from '../../source/tail-position.js';
import type { ChildEnding } from './child-ending.js';
import { chooseTarget } from './choose-target.js';
import type { CommandFacts } from './command-facts.js';
import type { ExecTarget } from './exec-target.js';
import { guessResource } from './guess-resource.js';
import { OtlpTap } from './otlp-tap.js';
import { removePrivateFolder } from './private-folder.js';
import { stepStartOf, toCommandEnding } from './step-facts.js';
import type { UserFile } from './user-file.js';

/** What OTLP bodies may take in memory while the JSONL is read, in bytes: 64 MiB; beyond it they go to the private folder. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;
/** How long requests under way may take when the command has ended, in milliseconds. */
const LAST_REQUESTS_MS = 1_000;
/** What is there when the command has ended is brought in for at least this long, in milliseconds, however short exports are kept. */
const MIN_BRING_IN_MS = 2_000;

/** The records of a command under way: from its file and its port to where they belong. */
export class LiveRecords {
  private readonly giveUp = new AbortController();
  private readonly records: Promise<CommandRecords>;
  private readonly tail: Promise<JsonlTail>;
  private readonly held: HeldRequests;
  private readonly target: Promise<ExecTarget>;
  private readonly running: Promise<void>;
  private trouble: string | undefined;

  constructor(private readonly facts: CommandFacts) {
    const { context, inlet, logger, folder, file } = facts;
    const { clock } = context;
    const tap = new OtlpTap({ clock, logger }, async (decoded, signal, bytes) => {
      await (await this.records).hold(decoded, signal, bytes);
    });
    inlet.answerWith(tap.receiver.answer);
    this.held = new HeldRequests({
      path: join(folder ?? context.tempDir, 'otel.otlp.jsonl'),
      maxMemoryBytes: MAX_HELD_BYTES,
      ...tap.codecs,
    });
    this.target = this.openTarget();
    this.target.catch(() => undefined);
    this.tail = startOf(file).then((from) => new JsonlTail(file?.path ?? '', { from }, clock));
    this.records = this.tail.then(
      (tail) =>
        new CommandRecords({
          lines: file === undefined ? [] : tail.chunks(this.giveUp.signal),
          held: this.held,
          decode: (request) => tap.decode(request),
          target: { consume: async (delivery) => (await this.target).consumer.consume(delivery) },
          guessResource: (first) => guessResource(first, facts.environment.OTEL_RESOURCE_ATTRIBUTES ?? ''),
          isOtlpExpected: /^(1|true)$/i.test(facts.environment.DBT_EXPORT_TO_OTLP ?? ''),
          clock,
        }),
    );
    this.running = this.records.then((records) => records.run(this.giveUp.signal));
    this.running.catch(() => undefined);
  }

  /** Brings in what is left, judges and exports; says what could not be done. */
  async end(ending: ChildEnding, stop: AbortSignal): Promise<void> {
    const { context, options, inlet, notices, folder, stepId } = this.facts;
    const { clock } = context;
    const endedUnixMs = clock.nowUnixMs();
    const deadline = new AbortController();
    const giveUp = () => this.giveUp.abort();
    const timers = [
      clock.after(options.flushTimeoutMs, () => deadline.abort()),
      clock.after(Math.max(options.flushTimeoutMs, MIN_BRING_IN_MS), giveUp),
    ];
    stop.addEventListener('abort', giveUp, { once: true });
    await inlet.close(AbortSignal.timeout(LAST_REQUESTS_MS));
    const records = await this.records;
    (await this.tail).finish();
    records.end();
    try {
      await this.running;
      const target = await this.target;
      const { book } = target;
      await book
        ?.end(stepId, toCommandEnding(ending), endedUnixMs)
        .catch((error: unknown) => notices.say(messageOf(error)));
      const left = await target.finish(records.traceIds, AbortSignal.any([deadline.signal, stop]));
      if (left !== null) notices.say(left);
      if (options.isSummaryWanted) notices.say(`${[...records.traceIds].join(', ')} in ${target.where}`);
      if (folder !== undefined) removePrivateFolder(folder);
    } catch (error) {
      await this.leave(error);
    } finally {
      for (const timer of timers) timer.cancel();
      await this.held.close();
      const target = await this.target.catch(() => undefined);
      await target?.close().catch((error: unknown) => notices.say(messageOf(error)));
    }
  }

  /** What could not be brought in stays where the next start, or the user, finds it. */
  private async leave(error: unknown): Promise<void> {
    const { notices, folder, file, configuration } = this.facts;
    const reason = this.trouble ?? messageOf(error);
    const isSaved = await this.held.saveAll().then(
      () => true,
      () => false,
    );
    const isWritten =
      folder !== undefined && file !== undefined && dirname(file.path) === folder && existsSync(file.path);
    if (folder === undefined || !isSaved || (this.held.count === 0 && !isWritten)) {
      if (folder !== undefined) removePrivateFolder(folder);
      notices.say(`${reason}; telemetry of the command is not kept`);
      return;
    }
    const next = folder.startsWith(configuration['data-dir'])
      ? 'the next start takes it in'
      : 'run-bridge import takes it in';
    notices.say(`${reason}; the command's telemetry is in ${folder}: ${next}`);
  }

  /** The step begins before its first record comes. */
  private async openTarget(): Promise<ExecTarget> {
    const { notices } = this.facts;
    const target = await this.chooseTarget();
    await target.book?.begin(stepStartOf(this.facts)).catch((error: unknown) => notices.say(messageOf(error)));
    return target;
  }

  private chooseTarget(): Promise<ExecTarget> {
    const { options, context } = this.facts;
    return chooseTarget({
      ...this.facts,
      to: options.to,
      userEndpoint: context.environment.OTEL_EXPORTER_OTLP_ENDPOINT || undefined,
      giveUp: this.giveUp.signal,
      onTrouble: (message) => {
        this.trouble = message;
      },
    });
  }
}

/** Where a file is to be read from that has been written before; `undefined` for its beginning. */
async function startOf(file: UserFile | undefined): Promise<TailPosition | undefined> {
  if (file === undefined || file.fromOffset === 0) return undefined;
  const found = await stat(file.path, { bigint: true }).catch(() => undefined);
  if (found === undefined) return undefined;
  return {
    inode: String(found.ino),
    offset: file.fromOffset,
    line: 1,
    headBytes: 0,
    headHash: hashOfHead(new Uint8Array(0)),
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
