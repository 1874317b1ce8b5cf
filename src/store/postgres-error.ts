import { errorCode } from '../component/error-code.js';
import { reasonOf } from '../component/reason-of.js';
import { StoreError, type StoreErrorCode } from './store-error.js';

/** What went wrong between the program and a PostgreSQL server, as a `StoreError` that says what to do. */
export function toPostgresError(cause: unknown, where: string): StoreError {
  if (cause instanceof StoreError) return cause;
  const message = messageOf(cause);
  const [code, advice] = explain(errorCode(cause) ?? '', message);
  return new StoreError(code, `${where}: ${advice} (${message})`, { cause });
}

type Explanation = readonly [StoreErrorCode, string];

const UNREACHABLE: Explanation = [
  'unreachable',
  'the server cannot be reached; check that it runs, and host and port in DATABASE_URL',
];
const LOST: Explanation = ['unreachable', 'the connection was lost; it is tried again'];
const NOT_LET_IN: Explanation = [
  'refused',
  'the server does not let this user in; check user and password in DATABASE_URL, and pg_hba.conf on the server',
];
const UNTRUSTED: Explanation = [
  'refused',
  "the server's certificate is not trusted; give its authority's file as sslrootcert in DATABASE_URL, or sslmode=no-verify where that is no matter",
];

/** PostgreSQL's codes (https://www.postgresql.org/docs/current/errcodes-appendix.html), Node's, and what `pg` says without one. */
const EXPLANATIONS: readonly (readonly [RegExp, Explanation])[] = [
  [/^(ENOTFOUND|EAI_AGAIN)$/, ['unreachable', 'the host is not known; check its name in DATABASE_URL']],
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENOENT|EACCES)$/, UNREACHABLE],
  [/^(ECONNRESET|EPIPE|ETIMEDOUT|ECONNABORTED|08...|57P01|57P02)$/, LOST],
  [/^57P03$/, ['unreachable', 'the server is starting or stopping; try again in a moment']],
  [
    /^53300$/,
    ['unreachable', 'the server takes no more connections; raise its max_connections, or close other programs'],
  ],
  [/^(28...|0L...|0P...)$/, NOT_LET_IN],
  [/^3D000$/, ['refused', 'there is no such database; create it (createdb NAME), or correct DATABASE_URL']],
  [/^3F000$/, ['refused', 'there is no schema to create tables in; create the one that search_path names']],
  [
    /^42501$/,
    ['readOnly', 'this user lacks a right; GRANT it CREATE on the schema, and let it own the tables of run-bridge'],
  ],
  [
    /^25006$/,
    [
      'readOnly',
      'the database can only be read; give the address of the primary server, or set default_transaction_read_only to off',
    ],
  ],
  [/^(53100|58030)$/, ['full', "the server's disk is full or fails; free some space there"]],
  // Data exceptions, and limits of the server, as of an index's key.
  [/^(22...|54...)$/, ['unstorable', 'the database cannot keep a value']],
  [/^XX00[12]$/, ['corrupt', 'the database is damaged; restore it from a backup']],
  [/^(40001|40P01|55P03)$/, ['locked', 'another program holds what is to be written; it is tried again']],
  [/(CERT|SIGNATURE|ISSUER|ALTNAME)/, UNTRUSTED],
];

/** What `pg` says without a code. */
const MESSAGES: readonly (readonly [RegExp, Explanation])[] = [
  [/client password must be a string|no password/i, NOT_LET_IN],
  [/does not support SSL/i, ['refused', 'the server does not speak TLS; leave sslmode out of DATABASE_URL']],
  [/timeout|timed out/i, UNREACHABLE],
  [/connection (was lost|terminated|ended|error)|not queryable|closed the connection/i, LOST],
];

function explain(code: string, message: string): Explanation {
  const byCode = EXPLANATIONS.find(([pattern]) => pattern.test(code));
  const found = byCode ?? MESSAGES.find(([pattern]) => pattern.test(message));
  return found?.[1] ?? ['unavailable', 'the database cannot be used'];
}

/** An address with several tries is told as a list of errors without a message of its own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  return reasonOf(error);
}
