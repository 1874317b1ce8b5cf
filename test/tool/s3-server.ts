import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildPeer, PeerProcess } from './peer-process.js';

/** A real S3-compatible server over a folder of its own, with two buckets. */
export class S3Server {
  static readonly accessKeyId = 'bridge-access';
  static readonly secretAccessKey = 'bridge-secret';
  static readonly region = 'eu-test-1';

  /**
   * Builds it where it is not yet, and starts it.
   * @param buckets names of those that exist
   * @param accessLog a file to which it writes a line for each request
   */
  static async start(port: number, buckets: readonly string[], accessLog?: string): Promise<S3Server> {
    buildPeer('versitygw');
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-s3-'));
    for (const name of ['sidecar', 'buckets', ...buckets.map((bucket) => `buckets/${bucket}`)]) {
      mkdirSync(join(folder, name));
    }
    const gateway = ['--port', `127.0.0.1:${port}`, '--region', S3Server.region, '--quiet'];
    if (accessLog !== undefined) gateway.push('--access-log', accessLog);
    // Beside the files, for file systems without extended attributes.
    const backend = ['posix', '--sidecar', join(folder, 'sidecar'), join(folder, 'buckets')];
    const process = await PeerProcess.startWith('versitygw', [...gateway, ...backend], port, {
      ROOT_ACCESS_KEY_ID: S3Server.accessKeyId,
      ROOT_SECRET_ACCESS_KEY: S3Server.secretAccessKey,
    });
    return new S3Server(process, folder, `http://127.0.0.1:${port}`);
  }

  private constructor(
    private readonly process: PeerProcess,
    private readonly folder: string,
    readonly endpoint: string,
  ) {}

  async stop(): Promise<void> {
    await this.process.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
