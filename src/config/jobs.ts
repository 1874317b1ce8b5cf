import type { DeclaredJob } from '../run/scope-finder.js';

/** A job as the configuration declares it. */
export interface JobDefinition extends DeclaredJob {
  /** What a run does, one after the other: programs with their arguments. Empty where the job cannot be started from here. */
  readonly commands: readonly (readonly string[])[];
  /** Whether a run may do other steps than these, which whoever starts it names. */
  readonly takesOtherSteps: boolean;
  /** Absolute path of the folder that the commands are run in. */
  readonly workingDir: string;
  /** Environment variables of the commands, beside those of the program. Values may be secrets. */
  readonly variables: Readonly<Record<string, string>>;
  /** Name of the engine's target; shown to clients, and nothing else. */
  readonly targetName: string | null;
  /** Threads of the engine; shown to clients, and nothing else. */
  readonly threads: number | null;
  /** A run that takes longer is interrupted, in milliseconds; `null` for no limit. */
  readonly timeoutMs: number | null;
  /** A run is expected in each such time, in milliseconds, or `AS_USUAL`; `null` where none is. */
  readonly expectMs: number | null;
}

/** Most commands that one job, or one run, may have. */
export const MAX_COMMANDS = 100;

/** What a line is: the words of a command, or why it is none, to end a sentence that begins with the line. */
export type SplitLine = { readonly words: readonly string[] } | LineProblem;

interface LineProblem {
  readonly problem: string;
  /** Whether a shell could run the line. */
  readonly isForShell?: true;
}

/**
 * Splits a line into a program and its arguments by the quoting rules of POSIX shells ('…' as it is, "…" with `\"`, `\\`,
 * `\$`, a backslash before any character), and runs no shell. What only a shell could do (pipes, `&&`, variables, `~`) is
 * refused instead of being passed to the program as text. `*`, `?`, `[` and `{` stay as they are: engines give them a
 * meaning of their own.
 */
export function splitCommandLine(line: string): SplitLine {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < line.length; at++) {
    const char = line.charAt(at);
    if (char === "'" || char === '"') {
      const quoted = readQuoted(line, at);
      if ('problem' in quoted) return quoted;
      word = (word ?? '') + quoted.text;
      at = quoted.end;
    } else if (char === '\\') {
      at += 1;
      if (at === line.length) return { problem: 'ends with a backslash' };
      if (line[at] !== '\n') word = (word ?? '') + line.charAt(at);
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      const isWordStart = word === undefined;
      if (SHELL_ONLY.has(char) || (isWordStart && SHELL_ONLY_IN_FRONT.has(char))) return needsShell(char);
      word = (word ?? '') + char;
    }
  }
  if (word !== undefined) words.push(word);
  return checked(words);
}

/** Says what is wrong with the words of a command; `undefined` where nothing is. */
export function problemOfWords(words: readonly string[]): string | undefined {
  const [program = ''] = words;
  if (program === '') return 'has no program';
  if (words.some((word) => word.includes('\0'))) return 'contains a zero byte, which is not possible in an argument';
  return undefined;
}

/** Spells words as a line that `splitCommandLine` takes apart again. */
export function joinCommandLine(words: readonly string[]): string {
  return words.map((word) => (PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ');
}

/** Outside of quotes a shell gives these a meaning wherever they stand … */
const SHELL_ONLY: ReadonlySet<string> = new Set('|&;<>()$`');
/** … and these at the beginning of a word. */
const SHELL_ONLY_IN_FRONT: ReadonlySet<string> = new Set('~#');
/** Characters behind which a backslash in double quotes vanishes. */
const ESCAPED_IN_QUOTES: ReadonlySet<string> = new Set('"\\$`');
const PLAIN = /^[\w.,:/@%+=*-]+$/;
const ASSIGNMENT = /^[A-Za-z_]\w*=/;

function readQuoted(line: string, start: number): { text: string; end: number } | LineProblem {
  const quote = line.charAt(start);
  let text = '';
  for (let at = start + 1; at < line.length; at++) {
    const char = line.charAt(at);
    if (char === quote) return { text, end: at };
    if (quote === '"') {
      if (char === '$' || char === '`') return needsShell(char);
      if (char === '\\' && ESCAPED_IN_QUOTES.has(line.charAt(at + 1))) {
        at += 1;
        text += line.charAt(at);
        continue;
      }
    }
    text += char;
  }
  return { problem: `has a ${quote} that is not closed` };
}

function needsShell(char: string): LineProblem {
  const problem = `has a ${char} outside of single quotes, and no shell runs it; quote it, or make it commands of their own`;
  return { problem, isForShell: true };
}

function checked(words: readonly string[]): SplitLine {
  const [program = ''] = words;
  if (ASSIGNMENT.test(program)) {
    return {
      problem: `begins with ${program.slice(0, program.indexOf('='))}=, and no shell runs it; set it under env:`,
    };
  }
  const problem = problemOfWords(words);
  return problem === undefined ? { words } : { problem };
}
