import { describe, expect, it } from 'vitest';
import { isForPages } from '../../../src/web/lazy-router.js';
import { endpointsOf, PAGE_TABLE, SIGN_IN_ENDPOINTS } from '../../fake/endpoint-table.js';

const HEADERS = { accept: 'text/html' };

describe('the port for people and tools', () => {
  it.each([...endpointsOf(PAGE_TABLE).map(({ name }) => name), ...SIGN_IN_ENDPOINTS])(
    'gives %s to the pages',
    (name) => {
      const [, path = ''] = name.split(' ');
      expect(isForPages({ path: path.replaceAll(/[:*]\w+/g, '1'), headers: HEADERS })).toBe(true);
    },
  );

  it.each(['/readyz', '/metrics', '/querying', '/query.csvs', '/api/v2/accounts'])('keeps %s from them', (path) => {
    expect(isForPages({ path, headers: HEADERS })).toBe(false);
  });
});
