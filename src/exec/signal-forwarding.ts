import { readFileSync } from 'node:fs';

/** What a stand-in is sent and hands on to the command. SIGKILL and SIGSTOP cannot be; Ctrl+Z stops the whole group as it is. */
export const FORWARDED_SIGNALS: readonly NodeJS.Signals[] = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGUSR1',
  'SIGUSR2',
];

/** Those that a terminal sends at a key, to all of its foreground. */
const KEYBOARD_SIGNALS: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT']);

/**
 * Whether a signal is to be handed on. In a terminal's foreground Ctrl+C has reached the command already, as it is in the
 * same process group; an engine that gets it twice takes the second as "at once" and cleans up nothing.
 */
export function isForwarded(signal: NodeJS.Signals, isInForeground: () => boolean): boolean {
  return !(KEYBOARD_SIGNALS.has(signal) && isInForeground());
}

/**
 * Whether this process belongs to the foreground of its terminal, whose Ctrl+C and Ctrl+\\ reach the whole process group.
 * @param hasTerminal what to answer where there is no /proc: whether a standard stream is a terminal.
 */
export function isInTerminalForeground(hasTerminal: boolean): boolean {
  try {
    return parseStat(readFileSync('/proc/self/stat', 'utf8'));
  } catch {
    return hasTerminal;
  }
}

/** proc_pid_stat(5): pid (comm) state ppid pgrp session tty_nr tpgid …; the name may hold blanks and parentheses. */
function parseStat(stat: string): boolean {
  const [, , groupId, , terminal, foregroundGroupId] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return terminal !== '0' && groupId === foregroundGroupId;
}
