import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatByteSize, parseByteSize } from '../../../src/config/byte-size.js';
import { formatDuration, parseDurationMs } from '../../../src/config/duration.js';
import { formatListenAddress, parseListenAddress } from '../../../src/config/listen-address.js';
import { retentionSetting } from '../../../src/config/retention-settings.js';
import { nearestName } from '../../../src/config/suggestion.js';

describe('a size', () => {
  test.each([
    ['64MiB', 67_108_864],
    ['1.5 kib', 1_536],
    ['500000', 500_000],
    ['2GB', 2_000_000_000],
  ])('%s is %d bytes', (text, bytes) => expect(parseByteSize(text)).toBe(bytes));
  test.each(['', '0', '-1', '1.5', '64 parsecs', 'MiB'])('%j is none', (text) => {
    expect(parseByteSize(text)).toBeUndefined();
  });
  test('reads back what it writes', () => {
    fc.assert(fc.property(fc.integer({ min: 1 }), (bytes) => parseByteSize(formatByteSize(bytes)) === bytes));
  });
});

describe('a time', () => {
  test.each([
    ['500ms', 500],
    ['2s', 2_000],
    ['1.5m', 90_000],
    ['1h', 3_600_000],
    ['0', 0],
  ])('%s is %d ms', (text, durationMs) => expect(parseDurationMs(text)).toBe(durationMs));
  test.each(['', '5', '-1s', '10 years', '1000h'])('%j is none', (text) => {
    expect(parseDurationMs(text)).toBeUndefined();
  });
  test('reads back what it writes', () => {
    fc.assert(fc.property(fc.nat(), (durationMs) => parseDurationMs(formatDuration(durationMs)) === durationMs));
  });
});

describe('how much is kept', () => {
  const setting = retentionSetting('');
  const context = { baseDir: '/', homeDir: '/' };
  test.each([
    ['off', { maxAgeMs: null, maxBytes: null }, 'off'],
    ['90d', { maxAgeMs: 7_776_000_000, maxBytes: null }, '90d'],
    ['50GiB', { maxAgeMs: null, maxBytes: 53_687_091_200 }, '50GiB'],
    ['1 GiB, 36h', { maxAgeMs: 129_600_000, maxBytes: 2 ** 30 }, '36h,1GiB'],
    ['500', { maxAgeMs: null, maxBytes: 500 }, '500'],
  ])('%s', (text, limits, written) => {
    expect(setting.parse(text, context)).toEqual(limits);
    expect(setting.format(limits)).toBe(written);
  });
  test.each(['', '0', '1d,2d', '1GiB,2GiB', '90d,', '11000d', 'ever'])('%j is nothing', (text) => {
    expect(setting.parse(text, context)).toBeUndefined();
  });
});

describe('an address', () => {
  test.each([
    ['127.0.0.1:4318', { host: '127.0.0.1', port: 4318 }],
    ['[::1]:0', { host: '::1', port: 0 }],
    ['localhost:80', { host: 'localhost', port: 80 }],
    ['4318', { host: '127.0.0.1', port: 4318 }],
  ])('%s', (text, address) => {
    expect(parseListenAddress(text)).toEqual(address);
    expect(parseListenAddress(formatListenAddress(address))).toEqual(address);
  });
  test.each(['', 'localhost', ':4318', 'a:65536', 'http://a:1', '::1:1'])('%j is none', (text) => {
    expect(parseListenAddress(text)).toBeUndefined();
  });
});

describe('the nearest name', () => {
  const names = ['http', 'web', 'data-dir', 'parquet'];
  test.each([
    ['htpp', 'http'],
    ['datadir', 'data-dir'],
    ['parket', 'parquet'],
    ['colour', undefined],
    ['x', undefined],
  ])('of %s is %s', (name, nearest) => expect(nearestName(name, names)).toBe(nearest));
});
