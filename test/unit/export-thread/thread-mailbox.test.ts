import { beforeEach, describe, expect, it } from 'vitest';
import type { ToThread } from '../../../src/export-thread/messages.js';
import { ThreadMailbox } from '../../../src/export-thread/thread-mailbox.js';
import type { TraceId } from '../../../src/record/ids.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/resource.js';
import type { RunEvent } from '../../../src/run/run-event.js';
import { Appended } from '../../../src/sink/appended.js';
import { traceIdOf } from '../../fake/memory-record-log.js';

const RUN = traceIdOf(1);
const MIB = 2 ** 20;

let posted: ToThread[];
let mailbox: ThreadMailbox;
beforeEach(() => {
  posted = [];
  mailbox = new ThreadMailbox((message) => posted.push(message));
});

function appended(traceId: TraceId, offset: number, byteCount: number): Appended {
  const lines = Buffer.alloc(byteCount, 'x');
  return new Appended(traceId, [{ resource: UNKNOWN_RESOURCE, offset, lines }], offset + byteCount);
}

function finished(traceId: TraceId, logBytes: number): RunEvent {
  const run = { traceId, firstSeenUnixMs: 1, lastSeenUnixMs: 2, state: 'finished', logBytes, invocations: [] } as const;
  return { type: 'finished', run };
}

const lineBytes = () =>
  posted.map((message) =>
    message.type === 'appended' ? message.pieces.reduce((sum, { lines }) => sum + lines.length, 0) : -1,
  );

describe('the mailbox of the export thread', () => {
  it('gives the lines away as bytes of their own', () => {
    const lent = appended(RUN, 100, 10);
    mailbox.appended(lent);
    lent.pieces[0]?.lines.fill(0);
    expect(posted).toEqual([
      {
        type: 'appended',
        traceId: RUN,
        offset: 100,
        lengthBytes: 110,
        pieces: [{ resource: UNKNOWN_RESOURCE, offset: 100, lines: new Uint8Array(Buffer.from('xxxxxxxxxx')) }],
      },
    ]);
  });

  it('leaves lines out while the thread has 8 MiB of them to take in', () => {
    for (let number = 0; number < 5; number += 1) mailbox.appended(appended(RUN, number * 3 * MIB, 3 * MIB));
    expect(lineBytes()).toEqual([3 * MIB, 3 * MIB, 0, 0, 0]);
    mailbox.took(1, 3 * MIB);
    mailbox.appended(appended(RUN, 15 * MIB, 3 * MIB));
    expect(lineBytes().at(-1)).toBe(3 * MIB);
  });

  it('keeps only the last news of each run while the thread takes nothing in, and tells it in the end', () => {
    for (let number = 0; number < 5_000; number += 1)
      mailbox.appended(appended(traceIdOf(1 + (number % 7)), number, 1));
    mailbox.told(finished(traceIdOf(3), 5_000));
    mailbox.appended(appended(traceIdOf(4), 5_000, 1));
    expect(posted).toHaveLength(1_000);
    posted.length = 0;
    mailbox.took(1_000, 1_000);
    const events = posted.filter((message) => message.type === 'run');
    expect(events).toEqual([{ type: 'run', event: finished(traceIdOf(3), 5_000) }]);
    const lengths = posted.flatMap((message) =>
      message.type === 'appended' ? [[message.traceId, message.lengthBytes]] : [],
    );
    expect(new Map(lengths as [string, number][]).get(traceIdOf(4))).toBe(5_001);
    expect(lengths).toHaveLength(7);
  });

  it('tells a new thread of the runs that are open', () => {
    mailbox.appended(appended(traceIdOf(1), 0, 10));
    mailbox.appended(appended(traceIdOf(2), 0, 20));
    mailbox.told(finished(traceIdOf(1), 10));
    posted.length = 0;
    mailbox.renew();
    expect(posted).toEqual([{ type: 'appended', traceId: traceIdOf(2), offset: 20, lengthBytes: 20, pieces: [] }]);
  });
});
