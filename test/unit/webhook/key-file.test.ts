import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readWebhookKeyFile } from '../../../src/webhook/secrets.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

let folder: string;
let path: string;
let logger: RecordingLogger;
const drawn = (count: number) => Buffer.alloc(count, 5);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-key-'));
  path = join(folder, 'webhook-key');
  logger = new RecordingLogger();
});
afterEach(() => rmSync(folder, { recursive: true }));
const mode = () => statSync(path).mode & 0o777;

it('is made once, for its owner alone', async () => {
  const key = await readWebhookKeyFile(folder, drawn, logger);
  expect([Buffer.from(key), mode()]).toEqual([Buffer.alloc(32, 5), 0o600]);
  expect(Buffer.from(await readWebhookKeyFile(folder, () => Buffer.alloc(32, 6), logger))).toEqual(Buffer.alloc(32, 5));
  expect(logger.lines).toEqual([]);
});

it('is made private again where it was not, which is said without showing it', async () => {
  await readWebhookKeyFile(folder, drawn, logger);
  chmodSync(path, 0o644);
  await readWebhookKeyFile(folder, drawn, logger);
  expect(mode()).toBe(0o600);
  expect(logger.lines).toHaveLength(1);
  expect(JSON.stringify(logger.lines)).not.toContain(readFileSync(path, 'utf8').trim());
});

it('is never replaced where it is damaged', async () => {
  writeFileSync(path, 'short\n');
  await expect(readWebhookKeyFile(folder, drawn, logger)).rejects.toThrow('holds no key');
  expect(readFileSync(path, 'utf8')).toBe('short\n');
});
