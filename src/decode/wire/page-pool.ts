import { SpanPage } from '../../record/span-page.js';
import { LineBuffer } from './line-buffer.js';

/** Bytes of lines a byte of body: two lines a span, each with its attributes. */
const LINES_PER_BODY = 3;
/** Pages that are kept for the next requests; as many as there are usually requests at once. */
const MAX_PAGES = 8;
/** A page whose lines grew beyond this is not kept, so that one large request does not occupy memory for good. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** A page that is being filled, and the buffer of its lines. */
export interface LentPage {
  readonly page: SpanPage;
  readonly out: LineBuffer;
}

/**
 * Pages that go around. A megabyte that is allocated anew for each request costs more than filling it: the system hands
 * it out zeroed page by page, and the collector counts it as garbage.
 */
export class PagePool {
  private readonly free: LentPage[] = [];

  /** @param bodyBytes size of the body that is to be decoded into it */
  take(bodyBytes: number): LentPage {
    const lent = this.free.pop() ?? { page: new SpanPage(), out: new LineBuffer(bodyBytes * LINES_PER_BODY + 4096) };
    lent.page.clear();
    lent.out.length = 0;
    return lent;
  }

  giveBack(lent: LentPage): void {
    if (this.free.length < MAX_PAGES && lent.out.bytes.length <= MAX_KEPT_BYTES) this.free.push(lent);
  }
}
