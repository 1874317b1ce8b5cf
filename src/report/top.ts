import { ReadStream } from 'node:tty';
import { CliError, EXIT, type ExitCode, type Invocation, type ProcessContext } from '../cli/command.js';
import { readConfiguration, refuseShared } from '../cli/command-configuration.js';
import type { Configuration } from '../config/configuration.js';
import { pause } from '../core/clock.js';
import { cleanLine, cut, lengthText } from '../core/text.js';
import type { RecordLogReader } from '../log/record-log.js';
import { RecordLogFiles } from '../log/record-log-files.js';
import type { TraceId } from '../record/telemetry-record.js';
import { RunProgress } from '../run/measures/run-progress.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { CatalogRun } from '../storage/run-catalog.js';
import type { State } from '../storage/state.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import { type ReportHost, settingOf } from './command.js';

/** How often is looked, in milliseconds: on a terminal, and where lines are written to something else. */
const SCREEN_MS = 1_000;
const LINES_MS = 5_000;
/** Runs that are shown. */
const MAX_RUNS = 50;
/** Nodes that are named. */
const MAX_NAMED = 2;

/** Runs `run-bridge top`, until it is stopped. @throws CliError, ConfigurationError */
export async function topRuns(invocation: Invocation, host: ReportHost): Promise<ExitCode> {
  const { context, switches } = invocation;
  const configuration = await readConfiguration(invocation);
  refuseShared(configuration, 'open the pages of any of the processes');
  const isScreen = context.stdoutColumns !== null && !switches.has('once');
  const quit = new AbortController();
  const signal = AbortSignal.any([context.stop, quit.signal]);
  const screen = isScreen ? new Screen(context, () => quit.abort()) : undefined;
  try {
    const isDone = await host.askState(configuration, context.clock, async (state) => {
      const live = new LiveRuns(state, configuration);
      for (;;) {
        const lines = await live.lines(context.clock.nowUnixMs());
        if (screen !== undefined) screen.show(lines);
        else for (const line of lines) context.stdout.write(`${line}\n`);
        if (switches.has('once')) return true;
        await pause(context.clock, screen === undefined ? LINES_MS : SCREEN_MS, signal);
        if (signal.aborted) return true;
      }
    });
    if (isDone === true) return EXIT.ok;
  } finally {
    screen?.close();
  }
  const folder = configuration['data-dir'];
  throw new CliError(EXIT.failed, `no run is in ${folder}; set the folder with --data-dir`);
}

/** The runs under way in a data folder; their record logs are read on from where they were read to. */
class LiveRuns {
  private readonly reader: RecordLogReader;
  private readonly known = new Map<
    number,
    { readonly progress: RunProgress; readonly offsets: Map<TraceId, number> }
  >();

  constructor(
    private readonly state: Pick<State, 'catalog' | 'traces'>,
    configuration: Pick<Configuration, 'data-dir'>,
  ) {
    this.reader = new RecordLogFiles(configuration['data-dir'], () => undefined);
  }

  async lines(nowUnixMs: number): Promise<readonly string[]> {
    const statuses = [RUN_STATUS.queued, RUN_STATUS.starting, RUN_STATUS.running];
    const query = { statuses, orderBy: 'created', isDescending: true, limit: MAX_RUNS, offset: 0 } as const;
    const { items, totalCount } = await this.state.catalog.listRuns(FIRST_ACCOUNT_ID, query);
    const live = new Set(items.map(({ id }) => id));
    for (const id of this.known.keys()) if (!live.has(id)) this.known.delete(id);
    if (items.length === 0) return ['no run is under way'];
    const lines: string[] = [];
    for (const run of items) lines.push(runLine(run, await this.read(run.id), nowUnixMs));
    return totalCount > items.length ? [...lines, `and ${totalCount - items.length} more`] : lines;
  }

  private async read(runId: number): Promise<RunProgress> {
    const known = this.known.get(runId) ?? { progress: new RunProgress(), offsets: new Map<TraceId, number>() };
    this.known.set(runId, known);
    for (const traceId of await this.state.traces.tracesOf(runId)) {
      for await (const records of this.reader.read(traceId, { fromOffset: known.offsets.get(traceId) ?? 0 })) {
        known.progress.add(records);
        const last = records.at(-1);
        if (last !== undefined) known.offsets.set(traceId, last.endOffset);
      }
    }
    return known.progress;
  }
}

/** `1042  nightly  214/600, 2 failed, running mart_12 for 41 s, about 3 min left, 4 min 12 s so far`. */
function runLine(run: CatalogRun, progress: RunProgress, nowUnixMs: number): string {
  const { doneCount, totalCount, failedCount, running, leftMs } = progress.view(nowUnixMs);
  const startedUnixMs = run.startedUnixMs ?? run.dequeuedUnixMs;
  const named = running.slice(0, MAX_NAMED).map(({ name, forMs }) => `${name} for ${roughly(forMs)}`);
  const more = running.length > named.length ? ` and ${running.length - named.length} more` : '';
  const parts = [
    startedUnixMs === null ? 'queued' : totalCount === null ? `${doneCount} done` : `${doneCount}/${totalCount}`,
    ...(failedCount > 0 ? [`${failedCount} failed`] : []),
    ...(named.length > 0 ? [`running ${named.join(' and ')}${more}`] : []),
    ...(leftMs === null ? [] : [`about ${roughly(leftMs)} left`]),
    ...(startedUnixMs === null ? [] : [`${roughly(nowUnixMs - startedUnixMs)} so far`]),
  ];
  return [run.id, cleanLine(run.job.name), cleanLine(parts.join(', '))].join('  ');
}

/** Whole seconds, and whole minutes from two on. */
function roughly(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : lengthText(ms);
}

const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
const CLEAR_BELOW = '\u001b[0J';
const CTRL_C = '\u0003';

/** Lines that are written over again and again, and a keyboard whose `q` and Ctrl+C end that. */
class Screen {
  private lineCount = 0;
  private readonly keyboard: ReadStream | undefined;

  constructor(
    private readonly context: ProcessContext,
    private readonly onQuit: () => void,
  ) {
    context.stdout.write(HIDE_CURSOR);
    if (!context.isStdinTerminal || !(context.stdin instanceof ReadStream)) return;
    this.keyboard = context.stdin;
    // Else `q` would be seen with the next line break only; Ctrl+C is a key then, and no signal.
    this.keyboard.setRawMode(true);
    this.keyboard.on('data', this.onKeys).resume();
  }

  show(lines: readonly string[]): void {
    const { hasColor } = settingOf(this.context);
    const columns = this.context.stdoutColumns ?? 80;
    const hint = hasColor ? '\u001b[2mq quits\u001b[0m' : 'q quits';
    const up = this.lineCount === 0 ? '' : `\u001b[${this.lineCount}A\r`;
    const shown = [...lines.map((line) => cut(line, columns)), hint];
    this.context.stdout.write(`${up}${CLEAR_BELOW}${shown.map((line) => `${line}\n`).join('')}`);
    this.lineCount = shown.length;
  }

  close(): void {
    this.context.stdout.write(SHOW_CURSOR);
    this.keyboard?.off('data', this.onKeys);
    this.keyboard?.setRawMode(false);
    this.keyboard?.pause();
  }

  private readonly onKeys = (keys: Buffer): void => {
    if (/[qQ]/.test(keys.toString()) || keys.includes(CTRL_C)) this.onQuit();
  };
}
