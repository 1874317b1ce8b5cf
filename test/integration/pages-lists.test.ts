import { afterAll, beforeAll, expect, it } from 'vitest';
import { PageServer } from '../fake/page-server.js';

let pages: PageServer;
let admin: string;
beforeAll(async () => {
  pages = await PageServer.open([]);
  admin = await pages.api.server.token('account_admin');
});
afterAll(() => pages.close());

it('says who somebody is only where there could be somebody else', async () => {
  const who = async (token: string) => {
    const { html } = await pages.get('/', token);
    return /<form class="who"[^>]*>(.*?)<button/.exec(html)?.[1]?.replaceAll(/<[^>]*>/g, '');
  };
  const reader = await pages.api.server.token('read_only');
  expect([await who(admin), await who(reader)]).toEqual(['', 'read only']);
  await pages.api.server.state.accounts.add({ name: 'finance', id: null }, 100);
  expect([await who(admin), await who(reader)]).toEqual(['account 10001, account admin', 'account 10001, read only']);
});
