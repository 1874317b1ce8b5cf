import { readableBytes } from '../../core/readable-bytes.js';
import type { PlatformAnswer } from './platform-answer.js';
import { PlatformError } from './platform-error.js';

/**
 * Reads an answer as JSON.
 * @throws PlatformError `tooLarge`, or `malformed` when it is no JSON.
 */
export async function readJson({ url, contentType, body }: PlatformAnswer, maxBytes: number): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of body) {
    byteCount += chunk.byteLength;
    if (byteCount > maxBytes) {
      throw new PlatformError('tooLarge', `${url}: the answer is larger than ${readableBytes(maxBytes)}`);
    }
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (cause) {
    const what = contentType === '' ? 'something' : contentType;
    throw new PlatformError(
      'malformed',
      `${url}: answered with ${what} that is not JSON. Check that --base-url is the platform's address for the API`,
      { cause },
    );
  }
}
