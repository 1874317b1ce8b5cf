import { Router } from 'express';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { authorize, callerOf } from '../../../src/api/authenticator.js';
import { success, successList } from '../../../src/api/envelope.js';
import { ApiServer } from '../../fake/api-server.js';

let server: ApiServer;
beforeEach(async () => {
  server = await ApiServer.open(() => [things()]);
});
afterEach(() => server.close());

function things(): Router {
  const router = Router();
  router.get('/api/v2/accounts/:accountId/things', authorize('runs:read'), (_request, response) => {
    const extra = { filters: { limit: 100, offset: 0 }, order_by: null, pagination: { count: 1, total_count: 1 } };
    response.json(successList([{ account_id: callerOf(response).accountId }], extra));
  });
  router.post('/api/run-bridge/v1/things', authorize('jobs:run'), (_request, response) => {
    response.status(201).json(success({ id: 5 }, 201));
  });
  router.get('/api/run-bridge/v1/failure', authorize(null), () => {
    throw new Error('a bug');
  });
  return router;
}

function refused(code: number, message: string) {
  const status = { code, is_success: false, user_message: message, developer_message: null };
  return { status: code, body: { status, data: null } };
}

describe('the API behind its tokens', () => {
  it('answers in the envelope, with and without a slash at the end', async () => {
    const token = await server.token('read_only');
    const status = { code: 200, is_success: true, user_message: 'Success!', developer_message: '' };
    const extra = { filters: { limit: 100, offset: 0 }, order_by: null, pagination: { count: 1, total_count: 1 } };
    for (const path of ['/api/v2/accounts/10001/things', '/api/v2/accounts/10001/things/?a=b']) {
      const answer = await server.ask('GET', path, token);
      expect(answer).toMatchObject({ status: 200, body: { status, data: [{ account_id: 10_001 }], extra } });
    }
    const made = await server.ask('POST', '/api/run-bridge/v1/things/', await server.token(), {});
    expect(made).toMatchObject({ status: 201, body: { status: { ...status, code: 201 }, data: { id: 5 } } });
  });

  it('asks for a token before it says what there is', async () => {
    const missing = refused(401, 'A token is needed: send the header "Authorization: Token <token>".');
    expect(await server.ask('GET', '/api/v2/accounts/10001/things')).toMatchObject(missing);
    expect(await server.ask('GET', '/api/v2/nothing')).toMatchObject(missing);
    expect(await server.ask('PUT', '/api/run-bridge/v1/nothing')).toMatchObject(missing);
    expect(await server.ask('GET', '/api/v2/nothing', 'rbt_x')).toMatchObject(refused(401, 'Invalid token.'));
  });

  it('shows nothing of another account, and nothing that is not there, in the same words', async () => {
    const token = await server.token();
    const nothing = refused(404, 'The requested resource was not found.');
    for (const path of ['accounts/1/things', 'accounts/x/things', 'accounts/010001/things', 'nothing']) {
      expect(await server.ask('GET', `/api/v2/${path}`, token)).toMatchObject(nothing);
    }
  });

  it.each(['/api/v3/nothing', '/api/v3/accounts/10001/webhooks/nothing', '/api/v2x', '/api/nothing', '/api/v4/x/'])(
    'says in the envelope that nothing is at %s',
    async (path) => {
      const nothing = refused(404, 'The requested resource was not found.');
      expect(await server.ask('GET', path, await server.token())).toMatchObject(nothing);
      expect(await server.ask('POST', path, await server.token(), {})).toMatchObject(nothing);
    },
  );

  it('says which right a token lacks', async () => {
    const token = await server.token('read_only');
    const lacking = refused(
      403,
      'This token is not allowed to do that: its permission set read_only does not include jobs:run.',
    );
    expect(await server.ask('POST', '/api/run-bridge/v1/things', token, {})).toMatchObject(lacking);
  });

  it('keeps the reason of a failure to its own log', async () => {
    const answer = await server.ask('GET', '/api/run-bridge/v1/failure', await server.token());
    expect(answer).toMatchObject(refused(500, 'run-bridge failed on this request; see its log.'));
    expect(String(server.logger.lines.at(-1)?.fields.stack)).toContain('a bug');
  });

  it('says what of a request cannot be read', async () => {
    const answer = await server.ask('GET', '/api/v2/accounts/%zz/things', await server.token());
    expect(answer).toMatchObject({ status: 400, body: { status: { code: 400, is_success: false } } });
  });
});
