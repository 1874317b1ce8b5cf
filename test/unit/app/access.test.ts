import { describe, expect, it } from 'vitest';
import { hashOf, newSecret } from '../../../src/api/authenticator.js';
import { Access } from '../../../src/app/access.js';
import { RequestError } from '../../../src/otlp/refusal.js';
import { ConsumeError } from '../../../src/record/record-batch.js';
import { FIRST_ACCOUNT_ID, type TokenRow } from '../../../src/storage/account-store.js';
import { StoreError } from '../../../src/storage/store-error.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

const tokenRow: TokenRow = {
  ...{ id: 1_001, accountId: FIRST_ACCOUNT_ID, name: 'a', userName: null, permission: 'developer', hash: '' },
  ...{ createdUnixMs: 0, expiresUnixMs: null, revokedUnixMs: null, usedUnixMs: 0 },
};

function access(
  auth: 'auto' | 'token' | 'none',
  findGood: () => Promise<TokenRow | undefined> = async () => undefined,
): Access {
  const tokens = { findGood, noteUse: async () => {}, exchangeLink: async () => false };
  return new Access(auth, { tokens, clock: new FakeClock(), logger: new RecordingLogger() });
}

describe('access', () => {
  it.each([
    ['127.0.0.1', true],
    ['127.8.0.1', true],
    ['::1', true],
    ['localhost', true],
    ['0.0.0.0', false],
    ['::', false],
    ['10.0.0.1', false],
    ['localhost.example', false],
    ['127.0.0.1.example', false],
  ])('to %s without a token is open by default: %s', async (host, isOpen) => {
    expect(access('auto').isOpen(host)).toBe(isOpen);
    const admission = access('auto').gateAt(host).admit(undefined, '10.0.0.1');
    if (isOpen) expect(await admission).toBeNull();
    else await expect(admission).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(access('none').isOpen(host)).toBe(true);
    expect(access('token').isOpen(host)).toBe(false);
  });

  it('is refused by words that say what to do', async () => {
    const gate = access('auto').gateAt('0.0.0.0');
    await expect(async () => gate.admit(undefined, '10.0.0.1')).rejects.toThrow(
      new RequestError(
        'unauthenticated',
        'A token is needed here: set OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer <token>" at the sender.',
      ),
    );
    await expect(async () => gate.admit('Bearer x', '10.0.0.1')).rejects.toMatchObject({ code: 'unauthenticated' });
    for (let index = 0; index < 19; index++) await gate.admit('Bearer x', '10.0.0.1')?.catch(() => {});
    await expect(async () => gate.admit('Bearer x', '10.0.0.1')).rejects.toMatchObject({ code: 'too_many_tries' });
  });

  it.each([
    ['asks for a token', '0.0.0.0'],
    ['is open', '127.0.0.1'],
  ])('says whose telemetry is, where the address %s', async (_kind, host) => {
    const secret = newSecret();
    const row = (given: Partial<TokenRow>) => async () => ({
      ...tokenRow,
      hash: hashOf(secret).toString('hex'),
      ...given,
    });
    const admit = (given: Partial<TokenRow>) =>
      access('auto', row(given)).gateAt(host).admit(`Bearer ${secret}`, '10.0.0.1');
    expect(await admit({ accountId: 10_002 })).toBe(10_002);
    expect(await admit({})).toBeNull();
  });

  it('counts a token that is not good, or may not send, as none where the address is open', async () => {
    const secret = newSecret();
    const hash = hashOf(secret).toString('hex');
    const reader: TokenRow = { ...tokenRow, hash, accountId: 10_002, permission: 'read_only' };
    const gate = access('auto', async () => reader).gateAt('127.0.0.1');
    expect(await gate.admit(`Bearer ${secret}`, '127.0.0.1')).toBeNull();
    expect(await access('auto').gateAt('127.0.0.1').admit(`Bearer ${secret}`, '127.0.0.1')).toBeNull();
  });

  it('may be asked for again while tokens cannot be looked up', async () => {
    const broken = async () => {
      throw new StoreError('locked', 'state.db: locked');
    };
    await expect(access('auto', broken).gateAt('0.0.0.0').admit('Bearer x', '10.0.0.1')).rejects.toThrow(ConsumeError);
    const here = access('auto', broken).gateAt('127.0.0.1');
    await expect(here.admit(`Bearer ${newSecret()}`, '127.0.0.1')).rejects.toThrow(ConsumeError);
    expect(await here.admit(undefined, '127.0.0.1')).toBeNull();
  });

  it('is given to commands that this program runs, for sending alone, where a token is needed', async () => {
    const here = access('token');
    const { RUN_BRIDGE_TOKEN: token = '' } = here.credentialsFor('127.0.0.1');
    expect(here.credentialsFor('127.0.0.1')).toEqual({ RUN_BRIDGE_TOKEN: token });
    await here.gateAt('127.0.0.1').admit(`Bearer ${token}`, '127.0.0.1');
    const admission = await here.authenticator.admit(`Token ${token}`, '127.0.0.1');
    expect(admission).toMatchObject({ kind: 'admitted', caller: { permission: 'sender' } });
    expect(await access('token').authenticator.admit(`Token ${token}`, '127.0.0.1')).toEqual({ kind: 'invalid' });
    expect(access('auto').credentialsFor('127.0.0.1')).toEqual({});
  });
});
