import { expect, it } from 'vitest';
import { SecretBox } from '../../../src/webhook/secrets.js';

const box = new SecretBox(Buffer.alloc(32, 1));

it('opens what it sealed, and seals the same text differently each time', () => {
  const sealed = box.seal('whsec_ü', 'wsu_1');
  expect(sealed).not.toContain('whsec');
  expect(box.open(sealed, 'wsu_1')).toBe('whsec_ü');
  expect(box.seal('whsec_ü', 'wsu_1')).not.toBe(sealed);
});

it("opens nothing as another one's, nothing that was changed, and nothing of another key", () => {
  const sealed = box.seal('secret', 'wsu_1');
  expect(() => box.open(sealed, 'wsu_2')).toThrow('damaged');
  expect(() => box.open(sealed.replace(/.{4}$/, 'AAA='), 'wsu_1')).toThrow('damaged');
  expect(() => new SecretBox(Buffer.alloc(32, 2)).open(sealed, 'wsu_1')).toThrow('RUN_BRIDGE_WEBHOOK_KEY');
});

it('takes no key of another length', () => {
  expect(() => new SecretBox(Buffer.alloc(16))).toThrow('32 bytes');
});
