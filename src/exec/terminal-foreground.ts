import { readFileSync } from 'node:fs';

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
