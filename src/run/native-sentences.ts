/** Parts that come from elsewhere: a node's id, and, at the end of a text, the name of a program or the system's reason. */
const NODE_ID = '(\\S{1,500})';
const PROGRAM = '([^\\n]{1,1000})';
const COUNT = '\\d{1,9}';
const NODES = `${COUNT} nodes?`;
const SIGNAL = 'SIG[A-Z0-9]{2,12}';

/**
 * Every sentence that the program itself says of how a command, a step or a run ended, as clauses: verdicts, endings of
 * commands, cancellations. They hold no value of anybody's project but in the parts that come from elsewhere, so redaction leaves the rest alone.
 */
const CLAUSES: readonly string[] = [
  // Verdicts: src/run/verdict.ts
  'No end was seen',
  'no end seen',
  'the engine was killed, or its last telemetry was lost',
  'the program that ran the command has gone without reporting how it ended',
  `Stopped by fail-fast(?: or by somebody)?(?: after ${NODE_ID} failed)?`,
  'Interrupted',
  'no node was running',
  `${NODES} canceled(?:, ${COUNT} not finished)?`,
  `${NODES} not finished`,
  `${NODES} had not ended`,
  `${NODES}(?: failed)?`,
  `${COUNT} errors?`,
  `${COUNT} error messages?`,
  'The process ended before any command began',
  '[Tt]he process ended without the end of its invocation span',
  'no node failed',
  'its telemetry tells of no failure',
  'the end of its telemetry was not seen',
  // Endings of commands: `endingWords`, src/storage/step-status.ts
  `[Tt]he command ended with exit code \\d{1,10}(?: \\(as a shell says of a command killed by ${SIGNAL}\\))?`,
  `[Tt]he command was killed by (?:${SIGNAL}|a signal)`,
  `[Tt]he command could not be started \\(${PROGRAM}: command not found\\)$`,
  `[Tt]he command could not be started \\(${PROGRAM}: cannot be run: permission denied; is it an executable file\\?\\)$`,
  `[Tt]he command could not be started \\(${PROGRAM}: cannot be run: E[A-Z0-9]{2,20}\\)$`,
  `[Tt]he command could not be started(?: \\(${PROGRAM}\\)$)?`,
  '[Tt]he command ended inside a command that went on',
  '[Tt]he command ended in an unknown way',
  // Runs
  'The run was cancell?ed',
];
/** What stands between two of them. */
const BETWEEN = ', though |, and |[;:,] ';

const CLAUSE = new RegExp(`(?:${CLAUSES.map((clause) => `(?:${clause})`).join('|')})(?=$|${BETWEEN})`, 'dy');
const SEPARATOR = new RegExp(BETWEEN, 'y');
/** What stands behind a text of the engine's, where the command's end adds to it. */
const ADDED = '; the command ';
const MAX_LENGTH = 2_000;

/** Makes a part from elsewhere safe to show. @param isProgram whether it names a program, as the caller wrote it */
export type RedactPart = (part: string, isProgram: boolean) => string;

/**
 * Redacts a sentence that the program wrote or ended: only the parts that come from elsewhere.
 * @returns `undefined` for a text that is none
 */
export function redactNativeSentence(text: string, redact: RedactPart): string | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const whole = redactClauses(text, 0, redact);
  if (whole !== undefined) return whole;
  const end = text.lastIndexOf(ADDED);
  const added = end === -1 ? undefined : redactClauses(text, end + 2, redact);
  return added === undefined ? undefined : `${redact(text.slice(0, end), false)}; ${added}`;
}

function redactClauses(text: string, from: number, redact: RedactPart): string | undefined {
  let shown = '';
  for (let position = from; ; ) {
    CLAUSE.lastIndex = position;
    const clause = CLAUSE.exec(text);
    if (clause === null) return undefined;
    const isProgram = PROGRAM_NAMED.test(clause[0]);
    for (const range of clause.indices?.slice(1) ?? []) {
      // A group of another clause.
      if (range === undefined) continue;
      shown += `${text.slice(position, range[0])}${redact(text.slice(range[0], range[1]), isProgram)}`;
      position = range[1];
    }
    const end = clause.index + clause[0].length;
    shown += text.slice(position, end);
    if (end === text.length) return shown;
    SEPARATOR.lastIndex = end;
    const [separator = ''] = SEPARATOR.exec(text) ?? [];
    shown += separator;
    position = end + separator.length;
  }
}

const PROGRAM_NAMED = /: (?:command not found|cannot be run: [^:]+)\)$/;
