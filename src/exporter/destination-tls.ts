import { readFile } from 'node:fs/promises';
import type { HttpTransportOptions } from '../delivery/http-transport.js';
import type { TlsFiles } from './destination-config.js';

/** Reads the files of a TLS connection. @throws Error naming the file that cannot be read. */
export async function loadTls(files: TlsFiles): Promise<NonNullable<HttpTransportOptions['tls']>> {
  return {
    ...(files.caFile === undefined ? {} : { ca: await readPem(files.caFile) }),
    ...(files.certFile === undefined ? {} : { cert: await readPem(files.certFile) }),
    ...(files.keyFile === undefined ? {} : { key: await readPem(files.keyFile) }),
  };
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new Error(`the certificate or key file ${path} cannot be read; check the path and its permissions`, {
      cause,
    });
  }
}
