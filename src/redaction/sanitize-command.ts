/**
 * A command line without values that may hold SQL or secrets. Known shapes of flags stay, values stay behind flags that
 * name things, and from the first flag with a free value on (`--vars`, `--inline`, `--args`) all is `?`: the engine joins
 * the words with blanks, so nothing tells where such a value ends.
 * @param commandLine for example `dbt build --select orders --vars {a: 1}`.
 */
export function sanitizeCommand(commandLine: string): string {
  const words = commandLine.split(/\s+/).filter((word) => word !== '');
  const kept: string[] = [];
  /** The flag that the next words belong to; none for the program's name and the commands. */
  let currentFlag: string | undefined;
  for (const [position, word] of words.entries()) {
    if (!word.startsWith('-')) {
      const isShown =
        currentFlag === undefined
          ? position < 3 && COMMAND.test(word)
          : NAMING_FLAGS.has(currentFlag) && NAME.test(word);
      if (isShown) kept.push(position === 0 ? word.slice(word.lastIndexOf('/') + 1) : word);
      else if (kept.at(-1) !== '?') kept.push('?');
      continue;
    }
    const equals = word.indexOf('=');
    const flag = equals === -1 ? word : word.slice(0, equals);
    const isFree = FREE_VALUE_FLAGS.has(flag);
    if (isFree || !FLAG.test(flag)) return [...kept, ...(isFree ? [flag] : []), '?'].join(' ');
    currentFlag = flag;
    const value = equals === -1 ? undefined : word.slice(equals + 1);
    const isValueShown = value !== undefined && NAMING_FLAGS.has(flag) && NAME.test(value);
    kept.push(value === undefined ? flag : `${flag}=${isValueShown ? value : '?'}`);
  }
  return kept.join(' ');
}

const FREE_VALUE_FLAGS: ReadonlySet<string> = new Set(['--vars', '--inline', '--args', '--sql', '--query']);
/** Flags whose values are names of nodes, files, levels or targets. */
const NAMING_FLAGS: ReadonlySet<string> = new Set(
  `--select -s --models -m --exclude --selector --resource-type --resource-types --exclude-resource-type --target -t
   --profile --threads --log-level --log-level-file --log-format --log-path --target-path --profiles-dir --project-dir
   --otel-file-name --otel-parquet-file-name --limit --output --output-keys --state --defer-state --indirect-selection
   --static-analysis --invocation-id --parent-span-id --event-time-start --event-time-end --batch-size`.split(/\s+/),
);
const FLAG = /^--?[a-z][a-z0-9-]{0,40}$/;
/** The program, its command and what that names: `dbt run-operation my_op`. */
const COMMAND = /^[A-Za-z/.][\w/.-]{0,200}$/;
/** A selector, a name or a path; no quotes, no blanks. */
const NAME = /^[\w.:+@*/,-]{1,200}$/;
