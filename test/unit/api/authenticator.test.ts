import { beforeEach, describe, expect, it } from 'vitest';
import { Authenticator, hashOf, newSecret } from '../../../src/api/authenticator.js';
import { FailedTries } from '../../../src/api/failed-tries.js';
import type { TokenRow } from '../../../src/storage/account-store.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

const ADDRESS = '10.0.0.1';
const clockStart = Date.UTC(2026, 0, 1);

/** Rows in memory that count how often they are looked for. */
class CountedTokens {
  readonly rows = new Map<string, TokenRow>();
  lookUpCount = 0;
  useCount = 0;
  isBroken = false;

  add(secret: string, given: Partial<TokenRow> = {}): string {
    const row: TokenRow = {
      id: 1_000 + this.rows.size,
      accountId: 10_001,
      name: 'a',
      userName: null,
      permission: 'developer',
      hash: hashOf(secret).toString('hex'),
      createdUnixMs: clockStart,
      expiresUnixMs: null,
      revokedUnixMs: null,
      usedUnixMs: null,
      ...given,
    };
    this.rows.set(row.hash, row);
    return secret;
  }
  revoke(secret: string): void {
    this.add(secret, { revokedUnixMs: clockStart });
  }
  async findGood(hash: string, nowUnixMs: number) {
    this.lookUpCount += 1;
    const row = this.rows.get(hash);
    const isGood = row?.revokedUnixMs === null && (row.expiresUnixMs === null || row.expiresUnixMs > nowUnixMs);
    return isGood ? row : undefined;
  }
  async noteUse() {
    this.useCount += 1;
    if (this.isBroken) throw new Error('locked');
  }
}

let clock: FakeClock;
let tokens: CountedTokens;
let logger: RecordingLogger;
let authenticator: Authenticator;
beforeEach(() => {
  clock = new FakeClock(clockStart);
  tokens = new CountedTokens();
  logger = new RecordingLogger();
  authenticator = new Authenticator({ tokens, tries: new FailedTries(clock), clock, logger });
});

const ask = (authorization: string | undefined, address = ADDRESS) => authenticator.admit(authorization, address);

describe('an authenticator', () => {
  it('knows whose token it is, after Token and after Bearer', async () => {
    const secret = tokens.add(newSecret());
    const caller = { accountId: 10_001, tokenId: 1_000, permission: 'developer' };
    for (const scheme of ['Token', 'Bearer', 'token', 'BEARER  ']) {
      expect(await ask(`${scheme} ${secret}`)).toEqual({ kind: 'admitted', caller });
    }
  });

  it('tells who has no token from who has one that is not good', async () => {
    expect(await ask(undefined)).toEqual({ kind: 'missing' });
    expect(tokens.lookUpCount).toBe(0);
  });

  it('answers every token that is not good alike, after the same steps', async () => {
    const good = tokens.add(newSecret());
    const expired = tokens.add(newSecret(), { expiresUnixMs: clockStart });
    const revoked = tokens.add(newSecret(), { revokedUnixMs: clockStart - 1 });
    const malformed = ['', 'Token', 'Token ', 'Bearer', `Basic ${good}`, good, `Token ${good}x`, `Token "${good}"`];
    for (const text of [`Token ${expired}`, `Token ${revoked}`, `Token ${newSecret()}`, ...malformed]) {
      tokens.lookUpCount = 0;
      expect(await ask(text)).toEqual({ kind: 'invalid' });
      expect(tokens.lookUpCount).toBe(1);
    }
    expect(tokens.useCount).toBe(0);
  });

  it('looks a good token up once in five seconds, so that it is refused so soon after it was revoked', async () => {
    const secret = tokens.add(newSecret());
    await ask(`Token ${secret}`);
    tokens.revoke(secret);
    clock.advance(4_999);
    expect(await ask(`Token ${secret}`)).toMatchObject({ kind: 'admitted' });
    expect(tokens.lookUpCount).toBe(1);
    clock.advance(1);
    expect(await ask(`Token ${secret}`)).toEqual({ kind: 'invalid' });
  });

  it('refuses a token from the moment it expires, and takes one as soon as it is there', async () => {
    const secret = newSecret();
    expect(await ask(`Token ${secret}`)).toEqual({ kind: 'invalid' });
    tokens.add(secret, { expiresUnixMs: clockStart + 1_000 });
    expect(await ask(`Token ${secret}`)).toMatchObject({ kind: 'admitted' });
    clock.advance(1_000);
    expect(await ask(`Token ${secret}`)).toEqual({ kind: 'invalid' });
  });

  it('stops looking tokens up for an address that fails too often, even many at once', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask('Token wrong')));
    expect(answers.filter(({ kind }) => kind === 'invalid')).toHaveLength(20);
    expect(tokens.lookUpCount).toBe(20);
    const secret = tokens.add(newSecret());
    expect(await ask(`Token ${secret}`)).toEqual({ kind: 'limited', retryAfterMs: 3_000 });
    expect(await ask(`Token ${secret}`, '10.0.0.2')).toMatchObject({ kind: 'admitted' });
  });

  it('lets in a token that was good before, however often others of its address fail', async () => {
    const secret = tokens.add(newSecret());
    await ask(`Token ${secret}`);
    for (let index = 0; index < 30; index++) await ask('Token wrong');
    clock.advance(6_000);
    for (let index = 0; index < 30; index++) await ask('Token wrong');
    expect(await ask(`Token ${secret}`)).toMatchObject({ kind: 'admitted' });
    tokens.revoke(secret);
    clock.advance(6_000);
    for (let index = 0; index < 30; index++) await ask('Token wrong');
    expect(await ask(`Token ${secret}`)).toEqual({ kind: 'invalid' });
    expect(await ask(`Token ${secret}`)).toMatchObject({ kind: 'limited' });
  });

  it('recognizes a good token where nobody has to have one, and counts no tries of what is none', async () => {
    const secret = tokens.add(newSecret(), { accountId: 10_002 });
    expect(await authenticator.recognize(`Bearer ${secret}`)).toMatchObject({ accountId: 10_002 });
    expect(await authenticator.recognize(`Token ${secret}`)).toMatchObject({ accountId: 10_002 });
    expect(tokens.lookUpCount).toBe(1);
    for (let index = 0; index < 30; index++) {
      expect(await authenticator.recognize('Basic dXNlcjpwYXNzd29yZA==')).toBeUndefined();
    }
    expect(tokens.lookUpCount).toBe(1);
    for (let index = 0; index < 30; index++) {
      expect(await authenticator.recognize(`Bearer ${newSecret()}`)).toBeUndefined();
    }
    tokens.revoke(secret);
    clock.advance(5_000);
    expect(await authenticator.recognize(`Bearer ${secret}`)).toBeUndefined();
    expect(await ask(`Token ${tokens.add(newSecret())}`)).toMatchObject({ kind: 'admitted' });
  });

  it('notes a use once in ten minutes, and lets in whose use cannot be noted', async () => {
    const secret = tokens.add(newSecret(), { usedUnixMs: clockStart });
    await ask(`Token ${secret}`);
    expect(tokens.useCount).toBe(0);
    tokens.isBroken = true;
    clock.advance(600_001);
    expect(await ask(`Token ${secret}`)).toMatchObject({ kind: 'admitted' });
    expect(tokens.useCount).toBe(1);
  });
});
