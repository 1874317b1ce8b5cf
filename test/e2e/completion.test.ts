import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/commands/run-cli.js';
import { runBridge } from './run-bridge.js';

let dir: string;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-completion-'));
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { exitCode, stdout, stderr } = await runBridge(['completion', shell], { cwd: dir });
    expect([exitCode, stderr]).toEqual([0, '']);
    writeFileSync(join(dir, shell), stdout);
  }
  writeFileSync(join(dir, 'orders.sql'), '');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** What each shell is asked with: the words so far, the last of which is to be completed; it prints a candidate a line. */
const SHELLS: Readonly<Record<string, (words: readonly string[]) => string>> = {
  bash: (words) => `
    source ./bash
    COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
    _run_bridge
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  // The functions of zsh's own system that the script calls, which need a line editor.
  zsh: (words) => `
    compdef() { :; }; _files() { :; }; _normal() { print -l -- "normal $words" }
    _describe() { local -a all; all=("\${(@P)2}"); for one in $all; do print -r -- "\${one%%:*}"; done }
    compadd() { print -rl -- "\${(@P)2}" }
    source ./zsh
    words=(${words.map((word) => `'${word}'`).join(' ')}); CURRENT=${words.length}
    _run_bridge | grep -e '^${words.at(-1)}' || true`,
  fish: (words) => `source ./fish; complete -C '${words.join(' ')}' | string replace -r '\\t.*' ''; true`,
};

const isThere = (shell: string) => spawnSync(shell, ['-c', 'true']).status === 0;

describe.each(Object.entries(SHELLS).filter(([shell]) => isThere(shell)))('in %s', (shell, script) => {
  const complete = (...words: string[]) =>
    execFileSync(shell, ['-c', script(['run-bridge', ...words])], {
      cwd: dir,
      encoding: 'utf8',
      env: { ...process.env, HOME: dir },
    })
      .split('\n')
      .filter((line) => line !== '')
      .sort();

  test('commands are completed', () => {
    expect(complete('re')).toEqual(['rebuild', 'report', 'restore', 'retain']);
    const all = complete('').filter((word) => !word.startsWith('-'));
    expect(all).toEqual(expect.arrayContaining(COMMANDS.map(({ name }) => name)));
  });

  test('so are options of a command, among them its settings', () => {
    expect(complete('runs', '--st')).toEqual(['--status']);
    expect(complete('serve', '--retain-tele')).toEqual(['--retain-telemetry']);
  });

  test('so are values that are known, actions, and names of commands for help', () => {
    expect(complete('report', '--format', 'j')).toEqual(['json', 'junit']);
    expect(complete('token', 'create', '--permission', 'an')).toEqual(['analyst']);
    expect(complete('token', 're')).toEqual(['revoke']);
    expect(complete('help', 'ex')).toEqual(['exec', 'export']);
  });

  test('what stands behind exec -- is not taken for an option of the bridge', () => {
    expect(complete('exec', '--', 'dbt', '--st').filter((word) => word.startsWith('--step'))).toEqual([]);
  });
});

test('a shell that is not known is refused, and the nearest is named', async () => {
  expect(await runBridge(['completion', 'bsh'], { cwd: dir })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('did you mean bash?'),
  });
});

test('help on a command that there is not names the one that was meant', async () => {
  expect(await runBridge(['help', 'reprot'], { cwd: dir })).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: 'run-bridge: unknown command "reprot"; did you mean report?\n',
  });
  const help = await runBridge(['help', 'report'], { cwd: dir });
  expect([help.exitCode, help.stdout]).toEqual([0, expect.stringContaining('Usage: run-bridge report')]);
});
