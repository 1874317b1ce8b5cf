// The program of the process that runs one query. `QueryEngine` starts it with an empty environment in the folder of runs. Like main.ts it is an entry point, so it may access the process.
import { text } from 'node:stream/consumers';
import { errorCode, reasonOf } from '../core/errors.js';
import { QueryError, type QueryErrorCode, type QueryMessage, type QueryTask } from './protocol.js';

/** Memory of the process in addition to the database engine's limit, in bytes: for the program, and rows being sent. */
const OTHER_MEMORY_BYTES = 400 * 1024 * 1024;
const MEMORY_WATCH_MS = 100;

async function post(message: QueryMessage): Promise<void> {
  if (process.stdout.write(`${JSON.stringify(message)}\n`)) return;
  await new Promise((resolve) => process.stdout.once('drain', resolve));
}

/** Sends the last message and then kills the process, since native threads may still be running. */
function end(message: QueryMessage): void {
  process.stdout.write(`${JSON.stringify(message)}\n`, () => process.kill(process.pid, 'SIGKILL'));
}

function endWith(error: unknown): void {
  end({ type: 'error', ...failureOf(error) });
}

function failureOf(error: unknown): Omit<Extract<QueryMessage, { type: 'error' }>, 'type'> {
  const code = errorCode(error);
  const message = reasonOf(error).replace(/^Failed to extract statements: /, '');
  const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  if (isMissing || /native binding|cannot open shared/.test(message)) return { code: 'notInstalled', message };
  if (error instanceof QueryError && isOfStatement(error.code)) return { code: error.code, message };
  if (/^Permission Error|configuration has been locked/.test(message)) return { code: 'refused', message };
  if (/^Out of Memory Error|failed to (allocate|pin)/i.test(message)) return { code: 'memory', message };
  if (/^IO Error|No magic bytes|TProtocolException|too small to be a Parquet file/i.test(message))
    return { code: 'filesChanged', message };
  return { code: /^(INTERNAL|FATAL)/.test(message) ? 'failed' : 'invalid', message };
}

function isOfStatement(code: QueryErrorCode): code is 'invalid' | 'refused' | 'tooLarge' {
  return code === 'invalid' || code === 'refused' || code === 'tooLarge';
}

// The client has gone if the pipe is closed, or if the parent was killed, which only the channel shows.
process.stdout.on('error', () => process.kill(process.pid, 'SIGKILL'));
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
try {
  const { sql, files, limits, parquetPath }: QueryTask = JSON.parse(await text(process.stdin));
  const maxBytes = limits.memoryMegabytes * 1_000_000 + OTHER_MEMORY_BYTES;
  setInterval(() => {
    if (process.memoryUsage.rss() > maxBytes) endWith(new Error('Out of Memory Error: the process grew too large'));
  }, MEMORY_WATCH_MS);
  const { openSandbox, runStatement, writeParquet } = await import('./sandbox.js');
  const sandbox = await openSandbox(files, limits, parquetPath);
  if (parquetPath === null) await runStatement(sandbox, sql, limits, post);
  else await post(await writeParquet(sandbox, sql, limits, parquetPath));
  process.stdout.write('', () => process.kill(process.pid, 'SIGKILL'));
} catch (error) {
  endWith(error);
}
