import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestProject } from 'vitest/node';
import { nativePostgres } from './native-postgres.js';
import { PostgresServer } from './postgres-server.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Where to ask for the URL of the PostgreSQL server that all test files share; the first who asks has it started. */
    readonly postgresStarter: string;
  }
}

/** One PostgreSQL server for a whole run of tests, started when the first test file asks for it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let server: Promise<PostgresServer> | undefined;
  const starter = createServer((_request, response) => {
    server ??= PostgresServer.start(nativePostgres());
    server.then(
      (started) => response.end(started.url()),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => starter.listen(0, '127.0.0.1', resolve));
  project.provide('postgresStarter', `http://127.0.0.1:${(starter.address() as AddressInfo).port}/`);
  return async () => {
    starter.close();
    const started = await server?.catch(() => undefined);
    await started?.stop();
  };
}
