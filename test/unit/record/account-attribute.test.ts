import { describe, expect, it } from 'vitest';
import { resourceOf } from '../../../src/otlp/wire/wire-decoder.js';
import {
  ACCOUNT_ATTRIBUTE,
  accountOf,
  accountOfStep,
  isReserved,
  ofAccount,
  type Resource,
  STEP_ATTRIBUTE,
  stepIdFor,
  stepIdOf,
} from '../../../src/record/attributes.js';

const resource = (attributes: Resource['attributes']): Resource => ({ attributes, scope: { name: 'x', version: '1' } });

describe('the account of a resource', () => {
  it('is the first where nothing is said', () => {
    const plain = resource({ 'service.name': 'dbt-core', [STEP_ATTRIBUTE]: 'a' });
    expect(accountOf(plain)).toBeNull();
    expect(ofAccount(plain, null)).toBe(plain);
  });

  it('stands in it, and its step is one of that account', () => {
    const own = ofAccount(resource({ 'service.name': 'dbt-core', [STEP_ATTRIBUTE]: 'a' }), 10_002);
    expect(own).toEqual(
      resource({ 'service.name': 'dbt-core', [STEP_ATTRIBUTE]: '10002/a', [ACCOUNT_ATTRIBUTE]: 10_002 }),
    );
    expect(accountOf(own)).toBe(10_002);
    expect(ofAccount(own, 10_002)).toBe(own);
  });

  it('is what the bridge says, and a step of another account is left out', () => {
    const own = ofAccount(resource({ [STEP_ATTRIBUTE]: 'a' }), 10_002);
    expect(ofAccount(own, null)).toEqual(resource({}));
    expect(ofAccount(own, 10_003)).toEqual(resource({ [ACCOUNT_ATTRIBUTE]: 10_003 }));
    expect(ofAccount(resource({ [STEP_ATTRIBUTE]: '10002/a' }), 10_003)).toEqual(
      resource({ [ACCOUNT_ATTRIBUTE]: 10_003 }),
    );
  });

  it('is nothing that a sender may say, nor is a step of another account', () => {
    expect(isReserved(ACCOUNT_ATTRIBUTE, 10_002)).toBe(true);
    expect(isReserved(STEP_ATTRIBUTE, '10002/a')).toBe(true);
    expect(isReserved(STEP_ATTRIBUTE, 'a')).toBe(false);
    expect(isReserved('service.name', 'a/b')).toBe(false);
  });

  it('is not what a sender says in its request', () => {
    const attributes = [
      { key: ACCOUNT_ATTRIBUTE, value: 10_002n },
      { key: STEP_ATTRIBUTE, value: '10002/a' },
      { key: 'service.name', value: 'dbt-core' },
    ];
    const none = { attributes: [], droppedAttributesCount: 0 };
    const scope = { scope: { ...none, name: 'dbt-core', version: '' }, schemaUrl: '', records: [] };
    const group = { resource: { ...none, attributes }, schemaUrl: '', scopes: [scope] };
    expect(resourceOf(group, scope).attributes).toEqual({ 'service.name': 'dbt-core' });
  });

  it('is in the ids of its steps, but for the first', () => {
    for (const accountId of [null, 10_002]) {
      const stepId = stepIdFor(accountId, 'a.b:c');
      expect(accountOfStep(stepId)).toBe(accountId);
      expect(stepIdOf(ofAccount(resource({ [STEP_ATTRIBUTE]: 'a.b:c' }), accountId))).toBe(stepId);
    }
    expect(accountOfStep('trace/0af7651916cd43dd8448eb211c80319c/1')).toBeNull();
  });
});
