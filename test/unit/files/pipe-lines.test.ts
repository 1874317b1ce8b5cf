import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PipeLines, type PipePart } from '../../../src/files/record-pipe.js';

const rawOf = (part: PipePart) =>
  part.kind === 'plain' ? part.bytes : part.kind === 'object' ? part.raw : Buffer.of();
const shown = (parts: Iterable<PipePart>) => [...parts].map((part) => [part.kind, Buffer.from(rawOf(part)).toString()]);

describe('PipeLines', () => {
  it('gives every byte back in its order, whatever comes and in whatever pieces', () => {
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.constantFrom('{"a":1}\n', '{', '}\n', '\n', ' \t', '\r\n', 'text', '{"record_type":').map(Buffer.from),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const lines = new PipeLines(30);
        const parts = [...pieces.flatMap((bytes) => [...lines.push(bytes)]), ...lines.end()];
        expect(Buffer.concat(parts.map(rawOf))).toEqual(Buffer.concat(pieces));
      }),
    );
  });

  it('gives a line that begins as an object when it is whole, with its number and place', () => {
    const lines = new PipeLines();
    expect(shown(lines.push(Buffer.from('text\n  {"a"')))).toEqual([['plain', 'text\n']]);
    const [part] = lines.push(Buffer.from(':1}\r\n'));
    expect(part).toMatchObject({ kind: 'object', line: { number: 2, offset: 5 } });
    expect(part?.kind === 'object' && Buffer.from(part.line.bytes).toString()).toBe('  {"a":1}');
  });

  it('gives other lines at once, also in pieces', () => {
    const lines = new PipeLines();
    expect(shown(lines.push(Buffer.from('Password: ')))).toEqual([['plain', 'Password: ']]);
    expect(shown(lines.push(Buffer.from('50%\r60%')))).toEqual([['plain', '50%\r60%']]);
  });

  it('gives up on a line beyond the limit, and takes the next one', () => {
    const lines = new PipeLines(20);
    const parts = [...lines.push(Buffer.from(`{"${'x'.repeat(30)}`)), ...lines.push(Buffer.from('yy"}\n{"a":1}\n'))];
    expect(shown(parts)).toEqual([
      ['tooLong', ''],
      ['plain', `{"${'x'.repeat(30)}`],
      ['plain', 'yy"}\n'],
      ['object', '{"a":1}\n'],
    ]);
  });
});
