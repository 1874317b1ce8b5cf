import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const SAMPLE = readFileSync('test/fixture/samples/build-mixed/otel.jsonl');
const LINES = SAMPLE.toString().trimEnd().split('\n');
const half = SAMPLE.subarray(0, 100);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-damaged-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function bridge(args: readonly string[], input?: Buffer): string {
  const done = spawnSync(process.execPath, ['dist/main.js', ...args], { input, encoding: 'utf8' });
  return done.stdout + done.stderr;
}

test.each([
  ['a byte order mark', Buffer.concat([Buffer.from('efbbbf', 'hex'), SAMPLE])],
  ['NULs that a truncation left', Buffer.concat([Buffer.alloc(5_000), SAMPLE])],
  ['half a line of another run', Buffer.concat([half, SAMPLE])],
  ['half a line and NULs', Buffer.concat([half, Buffer.alloc(100), SAMPLE])],
  ['a record without its line break', Buffer.from(SAMPLE.toString().replace('\n', ''))],
  ['a record to which others wrote', Buffer.from(SAMPLE.toString().replaceAll('\n', '12:00:01  Done {"} [0m\n'))],
])('behind %s every whole record is read', (name, bytes) => {
  const path = join(folder, `${name}.jsonl`);
  writeFileSync(path, bytes);
  for (const format of ['parquet', 'otlp.jsonl']) {
    expect(bridge(['convert', path, join(folder, `out.${format}`)])).toContain(`${LINES.length} records`);
  }
  expect(bridge(['pipe', '--data-dir', join(folder, name)], bytes)).toContain(`${LINES.length} records`);
});

test.each([
  ['a byte order mark', (text: string) => `\ufeff${text}`],
  ['NULs that a truncation left', (text: string) => `${'\0'.repeat(5_000)}${text}`],
  ['half a request', (text: string) => `${text.slice(0, 100)}${text}`],
  ['a request without its line break', (text: string) => text.replace('\n', '')],
])('behind %s every whole request of OTLP JSON lines is read', (name, damaged) => {
  const whole = join(folder, 'whole.otlp.jsonl');
  expect(bridge(['convert', 'test/fixture/samples/build-mixed/otel.jsonl', whole])).toContain('records');
  const text = readFileSync(whole, 'utf8');
  expect(text.trim().split('\n').length).toBeGreaterThan(1);
  const path = join(folder, `${name}.otlp.jsonl`);
  writeFileSync(path, damaged(text));
  expect(bridge(['convert', path, join(folder, 'again.jsonl')])).toContain(`${LINES.length} records`);
});

test('a file in UTF-16 is said to be one', () => {
  const path = join(folder, 'utf16.jsonl');
  writeFileSync(path, Buffer.from(`\ufeff${SAMPLE}`, 'utf16le'));
  expect(bridge(['convert', path, join(folder, 'out.otlp.jsonl')])).toContain(
    'in UTF-16; write the file again in UTF-8',
  );
});
