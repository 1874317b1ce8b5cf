import { chmodSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { RejectFile } from '../../../src/files/reject-file.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { temporaryFolder } from './reading.js';

const folder = temporaryFolder('reject-file');
const reject = { place: 'line 3', offset: 17, reason: 'not JSON', count: 1, text: 'x' };
const rows = (file: string) => folder.lines(file).map((line) => JSON.parse(line) as Record<string, unknown>);

describe('RejectFile', () => {
  it('keeps each with its file, place, reason and text', async () => {
    const file = new RejectFile(folder.path('new/rejects.jsonl'), new FakeClock(), () => {});
    await file.add('a.jsonl', [reject, { place: 'row 7', reason: 'no trace id', count: 1 }]);
    expect(rows('new/rejects.jsonl')).toEqual([
      {
        time: '2026-01-01T00:00:00.000Z',
        file: 'a.jsonl',
        place: 'line 3',
        byte_offset: 17,
        reason: 'not JSON',
        count: 1,
        text: 'x',
      },
      expect.objectContaining({ place: 'row 7', byte_offset: null, text: null }),
    ]);
  });

  it('begins a new file when it is full, and keeps the one before', async () => {
    const file = new RejectFile(folder.path('rejects.jsonl'), new FakeClock(), () => {}, 100);
    for (const place of ['line 1', 'line 2', 'line 3']) await file.add('a', [{ ...reject, place }]);
    expect(rows('rejects.jsonl').map(({ place }) => place)).toEqual(['line 3']);
    expect(rows('rejects.old.jsonl').map(({ place }) => place)).toEqual(['line 2']);
  });

  it('says once that it cannot be written', async () => {
    const messages: string[] = [];
    const path = folder.write('a-file', '');
    chmodSync(path, 0o400);
    const file = new RejectFile(`${path}/rejects.jsonl`, new FakeClock(), (message) => messages.push(message));
    await file.add('a', [reject]);
    await file.add('a', [reject]);
    expect(messages).toEqual([
      expect.stringMatching(/^what could not be read is not kept in .*a-file\/rejects.jsonl: /),
    ]);
    expect(readFileSync(path, 'utf8')).toBe('');
  });
});
