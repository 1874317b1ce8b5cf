import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { z } from 'zod';
import { type Clock, isPassingStatus, retry } from '../../core/clock.js';
import { exchange, type HttpAnswer, type StreamedBody } from '../../core/http-client.js';
import { API_PATH } from '../../run/api-path.js';
import {
  ArtifactError,
  type ArtifactErrorCode,
  type ArtifactKey,
  type ArtifactSink,
  encodedArtifactPath,
} from '../../storage/artifacts.js';
import { parseAnswer } from './bridge.js';

/** How often one artifact is sent. */
const MAX_ATTEMPTS = 3;
/** How long a bridge may take nothing of an artifact, and not answer, in milliseconds: 5 minutes, since it takes a few at a time. */
const SILENCE_MS = 300_000;

/** No more is read of an answer, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;

const answerSchema = z.object({ status: z.object({ user_message: z.string() }) });

/** Uploads artifacts to a bridge that runs: `PUT /api/run-bridge/v1/runs/{id}/artifacts/{path}?step=N`. */
export class HttpArtifactSink implements ArtifactSink {
  /**
   * @param baseUrl of the bridge, for example `http://127.0.0.1:4318`
   * @param headers sent along, for example `authorization`
   */
  constructor(
    private readonly baseUrl: string,
    private readonly clock: Clock,
    private readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  async put(key: ArtifactKey, file: string, signal: AbortSignal): Promise<void> {
    await retry(() => this.putOnce(key, file, signal), {
      clock: this.clock,
      signal,
      maxAttempts: MAX_ATTEMPTS,
      // The uploader waits longer, for all artifacts together.
      delayMs: (error) => (error instanceof ArtifactError && error.code === 'unavailable' ? 0 : null),
    });
  }

  private async putOnce({ runId, stepIndex, path }: ArtifactKey, file: string, signal: AbortSignal): Promise<void> {
    const url = `${this.baseUrl.replace(/\/+$/, '')}${API_PATH}/runs/${runId}/artifacts/${encodedArtifactPath(path)}?step=${stepIndex}`;
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      const { size } = await handle.stat();
      // A file that is being written while it is sent is sent as long as it was.
      const body =
        size === 0 ? Buffer.alloc(0) : { content: watched(handle, size, () => timer.refresh()), sizeBytes: size };
      const answer = await this.send(url, body, AbortSignal.any([signal, silence.signal]));
      // The status says all that has to be known, also where the rest of the answer does not come.
      const isTaken = answer.status >= 200 && answer.status < 300;
      if (!isTaken) throw refusal(answer, url);
    } finally {
      clearTimeout(timer);
      await handle.close();
    }
  }

  private async send(url: string, body: Uint8Array | StreamedBody, signal: AbortSignal): Promise<HttpAnswer> {
    const headers = { ...this.headers, 'content-type': 'application/octet-stream' };
    try {
      const request = { method: 'PUT', url: new URL(url), headers, body } as const;
      return await exchange(request, { signal, maxBodyBytes: MAX_ANSWER_BYTES });
    } catch (cause) {
      throw new ArtifactError('unavailable', `the bridge at ${this.baseUrl} cannot be reached`, { cause });
    }
  }
}

/** The first bytes of a file; says when they were taken. */
async function* watched(file: FileHandle, sizeBytes: number, onTaken: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of file.createReadStream({ autoClose: false, start: 0, end: sizeBytes - 1 })) {
    yield chunk;
    onTaken();
  }
}

const CODES: Readonly<Record<number, ArtifactErrorCode>> = { 409: 'conflict', 413: 'tooLarge', 507: 'full' };

function refusal({ status, body }: HttpAnswer, url: string): ArtifactError {
  const code = CODES[status] ?? (isPassingStatus(status) ? 'unavailable' : 'refused');
  const userMessage = answerSchema.safeParse(parseAnswer(body)).data?.status.user_message;
  return new ArtifactError(
    code,
    `${new URL(url).origin} answered ${status}: ${userMessage ?? 'it takes no artifacts'}`,
  );
}
