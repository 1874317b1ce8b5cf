import { ReadStream } from 'node:tty';
import { type LiveRun, LiveRuns, liveLine, roughly } from '../api/live-runs.js';
import { CliError, EXIT, type ExitCode, type Invocation, type ProcessContext } from '../cli/command.js';
import { readConfiguration, refuseShared } from '../cli/command-configuration.js';
import { pause } from '../core/clock.js';
import { cleanLine, cut } from '../core/text.js';
import { FIRST_ACCOUNT_ID } from '../storage/account-store.js';
import type { CatalogRun } from '../storage/run-catalog.js';
import type { State } from '../storage/state.js';
import { RUN_STATUS } from '../storage/state-tables.js';
import { settingOf } from './command.js';
import type { ReportHost } from './found-reports.js';
import { folderMeasures } from './list-runs.js';

/** How often is looked, in milliseconds: on a terminal, and where lines are written to something else. */
const SCREEN_MS = 1_000;
const LINES_MS = 5_000;
/** Runs that are shown. */
const MAX_RUNS = 50;

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
      const { reader, measures } = folderMeasures(configuration, state.measures);
      const live = new LiveRuns({ catalog: state.catalog, measures, reader });
      try {
        for (;;) {
          const lines = await liveLines(state, live, context.clock.nowUnixMs());
          if (screen !== undefined) screen.show(lines);
          else for (const line of lines) context.stdout.write(`${line}\n`);
          if (switches.has('once')) return true;
          await pause(context.clock, screen === undefined ? LINES_MS : SCREEN_MS, signal);
          if (signal.aborted) return true;
        }
      } finally {
        await measures.shutdown();
      }
    });
    if (isDone === true) return EXIT.ok;
  } finally {
    screen?.close();
  }
  const folder = configuration['data-dir'];
  throw new CliError(EXIT.failed, `no run is in ${folder}; set the folder with --data-dir`);
}

/** Says how far the runs under way in a data folder have come, in lines. */
async function liveLines(
  { catalog }: Pick<State, 'catalog'>,
  live: LiveRuns,
  nowUnixMs: number,
): Promise<readonly string[]> {
  const statuses = [RUN_STATUS.queued, RUN_STATUS.starting, RUN_STATUS.running];
  const query = { statuses, orderBy: 'created', isDescending: true, limit: MAX_RUNS, offset: 0 } as const;
  const { items, totalCount } = await catalog.listRuns(FIRST_ACCOUNT_ID, query);
  if (items.length === 0) return ['no run is under way'];
  const found = await live.of(items, nowUnixMs);
  const lines = items.map((run) => runLine(run, found.get(run.id), nowUnixMs));
  return totalCount > items.length ? [...lines, `and ${totalCount - items.length} more`] : lines;
}

/** `1042  nightly  214 of 600 nodes, 2 failed, running mart_12 for 41 s (usually 12 s), about 3 min left, 4 min so far`. */
function runLine(run: CatalogRun, live: LiveRun | undefined, nowUnixMs: number): string {
  const startedUnixMs = run.startedUnixMs ?? run.dequeuedUnixMs;
  const parts =
    startedUnixMs === null || live === undefined
      ? ['queued']
      : [liveLine(live), `${roughly(nowUnixMs - startedUnixMs)} so far`];
  return [run.id, cleanLine(run.job.name), cleanLine(parts.join(', '))].join('  ');
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
