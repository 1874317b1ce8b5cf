import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { Notices, readExecOptions } from '../../../src/exec/command-facts.js';
import { CommandOutput } from '../../../src/exec/command-output.js';
import type { ExecHost } from '../../../src/exec/exec-target.js';
import { CommandBridge } from '../../../src/exec/run-exec.js';
import { contextIn } from '../../fake/run-in-process.js';

const unopened: ExecHost = {
  askState: () => Promise.resolve(undefined),
  openState: () => Promise.reject(new Error('nothing is to be opened')),
  openStore: () => Promise.reject(new Error('nothing is to be opened')),
};

it('leaves whose command it is as soon as that has started, before anything else is loaded', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'run-bridge-command-'));
  const context = contextIn(dir);
  const flags = { 'data-dir': join(dir, 'data'), job: 'nightly' };
  const invocation = { context, flags, switches: new Set<string>(), operands: ['true'] };
  const options = readExecOptions(invocation);
  const notices = new Notices(new PassThrough(), true);
  const bridge = await CommandBridge.prepare(invocation, unopened, { options, outputs: [] }, notices);
  try {
    bridge.begin(undefined, new CommandOutput());
    const [folder = ''] = readdirSync(join(dir, 'data', 'spool'));
    const entry = JSON.parse(readFileSync(join(dir, 'data', 'spool', folder, 'command.json'), 'utf8'));
    expect(entry).toMatchObject({ step: { job: 'nightly', command: ['true'] }, end: null });
  } finally {
    await bridge.end({ kind: 'exited', exitCode: 0 }, new AbortController().signal, () => {});
    rmSync(dir, { recursive: true, force: true });
  }
});
