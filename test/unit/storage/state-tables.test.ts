import { describe, expect, it } from 'vitest';
import { parsePermissionSet } from '../../../src/storage/state-tables.js';

describe('a permission set', () => {
  it('is known by its name and by its title', () => {
    expect(parsePermissionSet('account_admin')).toBe('account_admin');
    expect(parsePermissionSet(' Account Admin ')).toBe('account_admin');
    expect(parsePermissionSet('read-only')).toBe('read_only');
    expect(parsePermissionSet('Webhooks Only')).toBe('webhooks_only');
    expect(parsePermissionSet('owner')).toBeUndefined();
    expect(parsePermissionSet('')).toBeUndefined();
  });
});
