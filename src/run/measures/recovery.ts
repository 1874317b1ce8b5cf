import type { CommandDigest } from './command-digest.js';
import { commandWord, executesNodes, readsNoRows } from './execution.js';
import type { CommandScope } from './run-scope.js';

/** What failed before a run, and how much of it the run has executed with success. */
export interface Recovery {
  readonly count: number;
  readonly ofCount: number;
}

/** `9 of 43 that had failed have succeeded` */
export function partialText({ count, ofCount }: Recovery): string {
  return `${count} of ${ofCount} that had failed ${count === 1 ? 'has' : 'have'} succeeded`;
}

/** A run, as far as it says what failed or did well. */
export interface JudgedRun {
  readonly isSuccess: boolean;
  /** Its command lines, as they were typed. */
  readonly commandLines: readonly string[];
  /** `undefined` where they are not known: its record log is gone, or not read yet. */
  readonly digests:
    | readonly (Pick<CommandDigest, 'failed' | 'good'> & { readonly scope: Pick<CommandScope, 'command'> })[]
    | undefined;
}

/** What a run was asked for. */
type Asked = Pick<JudgedRun, 'commandLines'> & Partial<Pick<JudgedRun, 'digests'>>;

/** Whether two runs were asked for the same: then one says of all that the other says. */
function asksForSame(one: Asked, other: Asked): boolean {
  return one.commandLines.join('\n') === other.commandLines.join('\n');
}

/** The commands of a run, such as `build`: as its telemetry names them, else as they were typed. */
function commandsOf({ commandLines, digests }: Asked): readonly (string | null)[] {
  const named = digests?.map(({ scope }) => scope.command) ?? [];
  return named.length === 0 || named.includes(null) ? commandLines.map(commandWord) : named;
}

/** Whether two runs are of the same commands, such as `build`, whatever these were asked for. */
export function hasSameCommands(one: Asked, other: Asked): boolean {
  return commandsOf(one).join('\n') === commandsOf(other).join('\n');
}

/** Whether any of a run's commands executes nodes. */
function isExecuting(run: Asked): boolean {
  const { commandLines } = run;
  if (commandLines.length > 0 && commandLines.every(readsNoRows)) return false;
  return commandsOf(run).some(executesNodes);
}

/** Whether an earlier success leaves open what failed before it: it executed nothing, or not what the later run was asked for. */
function leavesOpen(earlier: JudgedRun, run: JudgedRun): boolean {
  return !isExecuting(earlier) || !asksForSame(earlier, run);
}

/** Whether a failure behind an earlier success is a new one: that executed nodes, or was asked for the same. */
export function endsFailures(earlier: Asked, run: Asked): boolean {
  return isExecuting(earlier) || asksForSame(earlier, run);
}

/**
 * How much of what failed before a successful run has recovered with it: a node has when it was executed and succeeded, an error of
 * no node when a run of the same commands, or of one that executes nodes, succeeded.
 * @param nodes unique ids of all nodes that the run had; a node that the same commands have no more is not waited for
 * @param before the runs before it, the last to start first
 * @returns `null` where nothing had failed that had not recovered before
 */
export function recoveryOf(run: JudgedRun, nodes: ReadonlySet<string>, before: readonly JudgedRun[]): Recovery | null {
  const goodSince = new Set<string>();
  const judged = new Set<string>();
  const open = new Set<string>();
  for (const earlier of before) {
    const signs = signsOf(earlier);
    for (const sign of signs.good) if (!judged.has(sign)) goodSince.add(sign);
    const isSame = asksForSame(earlier, run);
    for (const sign of signs.failed) {
      if (!goodSince.has(sign) && !(isSame && isGone(sign, run, nodes))) open.add(sign);
    }
    for (const sign of [...signs.good, ...signs.failed]) judged.add(sign);
    if (earlier.isSuccess && !leavesOpen(earlier, run)) break;
  }
  if (open.size === 0) return null;
  const good = new Set(signsOf(run).good);
  return { count: [...open].filter((sign) => good.has(sign)).length, ofCount: open.size };
}

const OF_NO_NODE = 'command ';

function isGone(sign: string, { digests }: JudgedRun, nodes: ReadonlySet<string>): boolean {
  return digests !== undefined && !sign.startsWith(OF_NO_NODE) && !nodes.has(sign);
}

/** Names of what failed and of what did well: nodes, and commands where no node failed. */
function signsOf(run: JudgedRun): { readonly failed: readonly string[]; readonly good: readonly string[] } {
  const words = [...new Set(commandsOf(run))].map((word) => `${OF_NO_NODE}${word}`);
  const failed = run.digests?.flatMap((digest) => digest.failed) ?? [];
  const good = run.digests?.flatMap((digest) => digest.good) ?? [];
  if (!run.isSuccess) return { failed: failed.length > 0 ? failed : words, good };
  // What executes nodes has done first whatever other commands do.
  const prepared = isExecuting(run) ? PREPARED : [];
  return { failed: [], good: [...good, ...words, ...prepared] };
}

/** Failures of these commands are over where nodes were executed, and so are those of what came to no command of the engine. */
const PREPARED = ['parse', 'compile', 'list', 'ls', 'deps', 'debug', null].map((word) => `${OF_NO_NODE}${word}`);
