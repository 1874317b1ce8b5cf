import { beforeEach, describe, expect, it } from 'vitest';
import { ThreadMailbox } from '../../../src/export/export-thread.js';
import type { ExportedRunEvent } from '../../../src/export/thread-messages.js';
import { Appended } from '../../../src/log/appended.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import type { RunEvent } from '../../../src/run/run-event.js';
import { traceIdOf } from '../../fake/memory-record-log.js';

const RUN = traceIdOf(1);

type Posted =
  | { readonly type: 'appended'; readonly traceId: TraceId; readonly lengthBytes: number }
  | { readonly type: 'run'; readonly event: ExportedRunEvent };

let posted: Posted[];
let mailbox: ThreadMailbox;
beforeEach(() => {
  posted = [];
  mailbox = new ThreadMailbox({
    appended: (log) => posted.push({ type: 'appended', ...log }),
    runEvent: (event) => posted.push({ type: 'run', event }),
    drop: () => {},
  });
  mailbox.connect();
});

function finished(traceId: TraceId, logBytes: number): RunEvent {
  const run = { traceId, firstSeenUnixMs: 1, lastSeenUnixMs: 2, state: 'finished', logBytes, invocations: [] } as const;
  return { type: 'finished', run };
}

describe('the mailbox of the export thread', () => {
  it('says how long a log has become, and nothing of what is in it', () => {
    const lines = Buffer.from('{}\n');
    mailbox.appended(new Appended(RUN, [{ resource: UNKNOWN_RESOURCE, offset: 107, lines }], 110));
    expect(posted).toEqual([{ type: 'appended', traceId: RUN, lengthBytes: 110 }]);
  });

  it('keeps only the last news of each run while the thread takes nothing in, and tells it in the end', () => {
    for (let number = 1; number <= 5_000; number += 1)
      mailbox.appended({ traceId: traceIdOf(1 + (number % 7)), lengthBytes: number });
    mailbox.runEvent(finished(traceIdOf(3), 5_000));
    mailbox.appended({ traceId: traceIdOf(4), lengthBytes: 5_001 });
    expect(posted).toHaveLength(1_000);
    posted.length = 0;
    mailbox.acknowledged(1_000);
    const events = posted.filter((message) => message.type === 'run');
    expect(events).toEqual([{ type: 'run', event: finished(traceIdOf(3), 5_000) }]);
    const lengths = posted.flatMap((message) =>
      message.type === 'appended' ? [[message.traceId, message.lengthBytes]] : [],
    );
    expect(new Map(lengths as [string, number][]).get(traceIdOf(4))).toBe(5_001);
    expect(lengths).toHaveLength(7);
  });

  it('tells a new thread of the runs that are open', () => {
    mailbox.appended({ traceId: traceIdOf(1), lengthBytes: 10 });
    mailbox.appended({ traceId: traceIdOf(2), lengthBytes: 20 });
    mailbox.runEvent(finished(traceIdOf(1), 10));
    posted.length = 0;
    mailbox.disconnect();
    mailbox.connect();
    expect(posted).toEqual([{ type: 'appended', traceId: traceIdOf(2), lengthBytes: 20 }]);
  });

  it('keeps the end of a run for the thread that is not there yet', () => {
    mailbox.disconnect();
    mailbox.appended({ traceId: RUN, lengthBytes: 10 });
    mailbox.runEvent(finished(RUN, 10));
    expect(posted).toEqual([]);
    mailbox.connect();
    expect(posted).toEqual([
      { type: 'appended', traceId: RUN, lengthBytes: 10 },
      { type: 'run', event: finished(RUN, 10) },
    ]);
  });
});
