import { type CliCommand, CliError, CONFIG_FLAG, EXIT } from '../cli/command.js';
import { SETTINGS } from '../config/settings.js';
import { nearestName } from '../config/suggestion.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** One command as scripts of shells know it. */
interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly CompletedFlag[];
  /** Words that its first operand may be; empty for files, runs and the like. */
  readonly operands: readonly string[];
  /** Whether what follows is another command line. */
  readonly takesCommand: boolean;
}

interface CompletedFlag {
  /** With its hyphens. */
  readonly name: string;
  readonly summary: string;
  readonly takesValue: boolean;
  /** What the value may be; empty for anything. */
  readonly values: readonly string[];
}

/** The script that a shell completes the program's command lines with. @throws CliError for a shell that is not known */
export function completionScript(shell: string, commands: readonly CliCommand[]): string {
  const known = SHELLS.find((one) => one === shell);
  if (known === undefined) {
    const near = nearestName(shell, SHELLS);
    const hint = near === undefined ? `choose ${SHELLS.join(', ')}` : `did you mean ${near}?`;
    throw new CliError(EXIT.usage, `no completion for the shell ${JSON.stringify(shell)}; ${hint}`);
  }
  const names = commands.map(({ name }) => name);
  const help = { name: 'help', summary: 'print help on a command', flags: [], operands: names, takesCommand: false };
  const all = [...commands.map(completed), help];
  switch (known) {
    case 'bash':
      return bashScript(all);
    case 'zsh':
      return zshScript(all);
    case 'fish':
      return fishScript(all);
  }
}

function completed(command: CliCommand): CompletedCommand {
  const settings = command.settings.map(
    (key) => [`--${key} <${SETTINGS[key].placeholder}>`, SETTINGS[key].summary] as const,
  );
  const flags = [
    ...command.flags,
    ...settings,
    ...(settings.length > 0 ? [CONFIG_FLAG] : []),
    ['--help', 'print this help'] as const,
  ];
  return {
    name: command.name,
    summary: command.summary,
    flags: flags.map(([flag, summary]) => {
      const [name = '', placeholder] = flag.split(' ');
      return { name, summary, takesValue: placeholder !== undefined, values: command.values?.[name.slice(2)] ?? [] };
    }),
    // `<create|list|revoke> [ID]` in the notation of help texts; names in capitals are placeholders.
    operands: (/^[<[]([a-z|]+)[>\]]/.exec(command.operands)?.[1] ?? '').split('|').filter((word) => word !== ''),
    takesCommand: command.takesCommand === true,
  };
}

function words(list: readonly string[]): string {
  return list.join(' ');
}

function bashScript(commands: readonly CompletedCommand[]): string {
  const cases = commands.map(({ name, flags, operands }) => {
    const valued = flags
      .filter(({ takesValue }) => takesValue)
      .map((flag) => `        ${flag.name}) values="${words(flag.values)}"; takes=1 ;;`);
    return [
      `    ${name})`,
      `      flags="${words(flags.map((flag) => flag.name))}"`,
      `      operands="${words(operands)}"`,
      ...(valued.length === 0 ? [] : ['      case "$before" in', ...valued, '      esac']),
      '      ;;',
    ].join('\n');
  });
  const handing = commands.filter(({ takesCommand }) => takesCommand).map(({ name }) => name);
  return `# Completion of run-bridge for bash: source <(run-bridge completion bash)
_run_bridge() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD - 1]}"
  local command="\${COMP_WORDS[1]}" flags="" operands="" values="" takes="" at
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${words(commands.map(({ name }) => name))} --help --version" -- "$word"))
    return
  fi
  case "$command" in
    ${handing.join('|')})
      # What follows is a command line of its own.
      for ((at = 2; at < COMP_CWORD; at++)); do
        if [ "\${COMP_WORDS[at]}" = -- ]; then return; fi
      done
      ;;
  esac
  case "$command" in
${cases.join('\n')}
  esac
  if [ -n "$takes" ]; then
    COMPREPLY=($(compgen -W "$values" -- "$word"))
  elif [ "\${word#-}" != "$word" ]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  elif [ "$COMP_CWORD" -eq 2 ]; then
    COMPREPLY=($(compgen -W "$operands" -- "$word"))
  fi
}
complete -o bashdefault -o default -F _run_bridge run-bridge
`;
}

function zshScript(commands: readonly CompletedCommand[]): string {
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const described = (name: string, summary: string) => quote(`${name}:${summary}`);
  const cases = commands.map(({ name, flags, operands }) => {
    const valued = flags
      .filter(({ takesValue }) => takesValue)
      .map((flag) => `        ${flag.name}) takes=1; values=(${words(flag.values)}) ;;`);
    return [
      `    ${name})`,
      `      flags=(${words(flags.map((flag) => described(flag.name, flag.summary)))})`,
      `      operands=(${words(operands)})`,
      ...(valued.length === 0 ? [] : ['      case $words[CURRENT-1] in', ...valued, '      esac']),
      '      ;;',
    ].join('\n');
  });
  const handing = commands.filter(({ takesCommand }) => takesCommand).map(({ name }) => name);
  return `#compdef run-bridge
# Completion of run-bridge for zsh: source <(run-bridge completion zsh), or a file _run-bridge in a folder of $fpath
_run_bridge() {
  local -a commands flags operands values
  local takes=
  commands=(${words(commands.map(({ name, summary }) => described(name, summary)))})
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local at=\${words[(i)--]}
  if [[ $words[2] == (${handing.join('|')}) ]] && (( at < CURRENT )); then
    # What follows is a command line of its own.
    shift $at words
    (( CURRENT -= at ))
    _normal
    return
  fi
  case $words[2] in
${cases.join('\n')}
  esac
  if [[ -n $takes ]]; then
    if (( \${#values} )); then compadd -a values; else _files; fi
  elif [[ $words[CURRENT] == -* ]]; then
    _describe option flags
  elif (( CURRENT == 3 && \${#operands} )); then
    compadd -a operands
  else
    _files
  fi
}
if [[ $funcstack[1] == _run_bridge ]]; then _run_bridge "$@"; else compdef _run_bridge run-bridge; fi
`;
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const quote = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const lines = commands.flatMap(({ name, summary, flags, operands }) => {
    const isIn = `-n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c run-bridge -f -n __fish_use_subcommand -a ${name} -d ${quote(summary)}`,
      ...flags.map((flag) => {
        const value = !flag.takesValue ? '' : flag.values.length === 0 ? ' -r' : ` -x -a ${quote(words(flag.values))}`;
        return `complete -c run-bridge ${isIn} -l ${flag.name.slice(2)}${value} -d ${quote(flag.summary)}`;
      }),
      ...(operands.length === 0 ? [] : [`complete -c run-bridge -f ${isIn} -a ${quote(words(operands))}`]),
    ];
  });
  return `# Completion of run-bridge for fish, for ~/.config/fish/completions/run-bridge.fish
${lines.join('\n')}
`;
}
