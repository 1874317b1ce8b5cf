import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hashOf } from '../../../src/api/authenticator.js';
import { openSqliteState } from '../../../src/storage/sqlite-state.js';
import { runInProcess } from '../../fake/run-in-process.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-token-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const token = (...args: readonly string[]) => runInProcess(['token', ...args, '--data-dir', join(dir, 'data')], dir);
const create = (...args: readonly string[]) => token('create', '--name', 'airflow', ...args);

describe('run-bridge token', () => {
  it('prints a new token alone, and keeps its hash and what was said of it', async () => {
    const { exitCode, stdout, stderr } = await create(
      '--permission',
      'Read-Only',
      '--expires',
      '90d',
      '--user',
      'anna',
    );
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^rbt_[\w-]{43}\n$/);
    expect(stderr).toMatch(
      /^token 1001 \(airflow\): a token of anna with read_only for account 10001, valid until 20.{14} UTC; it is shown only once:\n$/,
    );
    const state = await openSqliteState(join(dir, 'data', 'state.db'));
    const row = await state.tokens.findGood(hashOf(stdout.trim()).toString('hex'), 0);
    await state.close();
    expect(row).toMatchObject({ name: 'airflow', userName: 'anna', permission: 'read_only', revokedUnixMs: null });
    expect((row?.expiresUnixMs ?? 0) - (row?.createdUnixMs ?? 0)).toBe(90 * 86_400_000);
  });

  it('makes an account with its first token, under a number that nothing had', async () => {
    expect((await create('--permission', 'admin')).stderr).toContain('for account 10001,');
    const made = await create('--permission', 'admin', '--new-account', 'finance');
    expect(made).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('for account 10002,') });
    expect((await create('--permission', 'analyst', '--account', '10002')).stderr).toContain('for account 10002,');
    expect((await create('--permission', 'admin', '--new-account', 'x', '--account', '10009')).stderr).toContain(
      'for account 10009,',
    );
    expect(await create('--permission', 'admin', '--new-account', 'x', '--account', '10002')).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/^run-bridge: --account: there is an account 10002 already; /),
    });
  });

  it('lists tokens without showing them, and revokes them for good', async () => {
    const { stdout: secret } = await create('--permission', 'admin');
    await token('create', '--name', 'dagster', '--permission', 'developer', '--expires', '12h');
    expect(await token('revoke', '1001')).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'token 1001 (airflow) is revoked: it is rejected within five seconds\n',
    });
    expect((await token('revoke', '1001')).stderr).toBe('token 1001 (airflow) was already revoked\n');
    const { stdout } = await token('list');
    expect(stdout).toMatch(
      /^ID +NAME +PERMISSION +USER +ACCOUNT +CREATED +LAST USED +STATE\n1001 +airflow +admin +- +10001 .* never +revoked .* UTC\n1002 +dagster +developer .* good until .* UTC\n$/,
    );
    expect(stdout).not.toContain(secret.trim());
  });

  it.each([
    [
      ['create', '--permission', 'admin'],
      2,
      '--name is missing: say what the token is for, for example --name airflow',
    ],
    [['create', '--name', ' ', '--permission', 'admin'], 2, '--name: give 1 to 200 letters on one line'],
    [['create', '--name', 'a\u001b[2J', '--permission', 'admin'], 2, '--name: give 1 to 200 letters on one line'],
    [['create', '--name', 'a'], 2, /^--permission is missing: choose one of account_admin, admin, /],
    [['create', '--name', 'a', '--permission', 'amdin'], 2, /"amdin" is no permission set; did you mean admin\?$/],
    [['create', '--name', 'a', '--permission', 'x'], 2, /"x" is no permission set; choose one of account_admin, /],
    [['create', '--name', 'a', '--permission', 'admin', '--expires', '0'], 2, /"0" is not a time such as 12h or 90d$/],
    [
      ['create', '--name', 'a', '--permission', 'admin', '--account', '1'],
      1,
      /no account 1; there is 10001, and --new-account NAME makes another$/,
    ],
    [['create', '--name', 'a', '--permission', 'admin', '--account', 'x'], 2, /"x" is not the number of an account$/],
    [['craete'], 2, 'token "craete" is not a known action; did you mean create?'],
    [['list', '--name', 'a'], 2, '--name belongs to run-bridge token create, not to list'],
    [['list', '4'], 2, 'run-bridge token list takes no "4"'],
    [['list'], 1, /data has no tokens: nothing has been stored there; is --data-dir right\?$/],
    [['revoke'], 2, 'no token given: give its id, as run-bridge token list shows it'],
    [['revoke', 'airflow'], 2, 'a token is revoked by its id, a number that run-bridge token list shows'],
  ])('says of %j what is wrong', async (args, exitCode, message) => {
    const ended = await token(...args);
    expect(ended).toMatchObject({ exitCode, stdout: '' });
    expect(ended.stderr.trimEnd().replace('run-bridge: ', '')).toMatch(message);
    if (exitCode === 2 || args[0] !== 'create') expect(existsSync(join(dir, 'data'))).toBe(false);
  });

  it('says which token is not there', async () => {
    await create('--permission', 'admin');
    expect((await token('revoke', '7')).stderr).toBe(
      'run-bridge: there is no token 7; run-bridge token list shows all\n',
    );
  });
});
