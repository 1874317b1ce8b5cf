import type pg from 'pg';
import { groupBy } from '../../src/core/lists.js';

/** An object that a process began to put into the bucket. */
interface Put {
  readonly writer: string;
  readonly key: string;
}

/** What the history shows. */
export interface WriteFigures {
  /** Claims of partitions, writes to the rows of runs, and objects in the bucket. */
  readonly claimCount: number;
  readonly rowCount: number;
  readonly objectCount: number;
  /** Runs that were at their end, went on since more records came, and came to their end again. */
  readonly endedLaterCount: number;
  /** Who has written what was not his, and runs that ended twice with the same records, in words. */
  readonly problems: readonly string[];
}

/** Tables whose rows are written by whoever has the trace, alone. */
const TABLES = ['runs', 'invocations', 'journal_files', 'export_cursors'];

/**
 * Who has written what of which run, and who had its partition then: evidence that no run is written by two at a time.
 *
 * Rows: triggers note each committed write and each claim of a partition, with the process (the `application_name` of its
 * connection) and the transaction. The database keeps when each was committed (`track_commit_timestamp`), and it does so
 * before locks are let go. So for each write the owner at its commit is known, whatever the program believed: it has to be the
 * writer. The database names a run's files, so this holds for every object that counts in the end, too.
 *
 * Objects: the proxy of each process notes what that one puts. A key says the generation under which it was put, and each has to
 * be one that its process has claimed for the run's partition. Then no two have put the same object. What a process puts that has
 * lost the partition the database never names, segments neither: that is among the rows.
 *
 * Lives of one process are not told apart: the one before was dead when the next one began.
 */
export class WriteHistory {
  private readonly puts: Put[] = [];

  constructor(private readonly client: pg.Client) {}

  /** Begins to note rows. @param writers names of the processes that have partitions already, by their ids */
  async begin(writers: ReadonlyMap<string, string>): Promise<void> {
    const { client } = this;
    const triggers = TABLES.map((table) => {
      const detail = { runs: `new.state || ' ' || new.log_bytes`, journal_files: 'new.object_key' }[table] ?? 'null';
      return `
        create function history.note_${table}() returns trigger language plpgsql as $$ begin
          insert into history.writes (kind, trace_id, detail, writer, xid)
          values ('${table}', new.trace_id, ${detail}, current_setting('application_name'), pg_current_xact_id());
          return null;
        end $$;
        create trigger note after insert or update on ${table} for each row execute function history.note_${table}();`;
    });
    await client.query(`
      begin;
      create schema history;
      create table history.claims (
        partition_index int, generation bigint, process_id text, writer text, xid xid8, number bigserial);
      create table history.writes (kind text, trace_id text, detail text, writer text, xid xid8, number bigserial);
      create function history.note_claim() returns trigger language plpgsql as $$ begin
        insert into history.claims (partition_index, generation, process_id, writer, xid)
        values (new.partition_index, new.generation, new.process_id, current_setting('application_name'), pg_current_xact_id());
        return null;
      end $$;
      lock table journal_partitions in exclusive mode;
      insert into history.claims (partition_index, generation, process_id)
        select partition_index, generation, process_id from journal_partitions;
      create trigger note after insert or update on journal_partitions for each row execute function history.note_claim();
      ${triggers.join('')}
      commit`);
    for (const [processId, writer] of writers) {
      await client.query('update history.claims set writer = $2 where process_id = $1 and xid is null', [
        processId,
        writer,
      ]);
    }
  }

  /** Notes what a process sends to the bucket. Clients begin a request when the one before was answered, so with a chunk of its own. */
  notePut(writer: string, chunk: Buffer): void {
    if (chunk[0] !== PUT_BYTE) return;
    const [, key] = /^PUT \/[^/]+\/([^ ?]+)\S* HTTP\/1\.1\r\n/.exec(chunk.toString('latin1', 0, 1_000)) ?? [];
    if (key !== undefined) this.puts.push({ writer, key: decodeURIComponent(key) });
  }

  async audit(): Promise<WriteFigures> {
    const problems: string[] = [];
    const { rows: strange } = await this.client.query(`
      with claim as (
        select *, coalesce(pg_xact_commit_timestamp(xid::xid), '-infinity') as at from history.claims
      ), change as (
        select write.*, trace.partition_index, pg_xact_commit_timestamp(write.xid::xid) as at
        from history.writes write left join journal_traces trace on trace.trace_id = write.trace_id
      )
      select change.*, owner.writer as owner, owner.generation from change left join lateral (
        select writer, generation from claim
        where claim.partition_index = change.partition_index and claim.at <= change.at
        order by claim.at desc limit 1
      ) owner on true
      where owner.writer is distinct from change.writer order by change.number`);
    for (const row of strange) problems.push(`written by another than the owner: ${JSON.stringify(row)}`);
    const { rows: shared } = await this.client.query(`
      select partition_index, generation, array_agg(distinct writer) as writers from history.claims
      group by partition_index, generation having count(distinct process_id) > 1`);
    for (const row of shared) problems.push(`two have claimed it in one generation: ${JSON.stringify(row)}`);
    const { rows: claims } = await this.client.query<{ claim: string }>(
      `select distinct writer || ' ' || generation || ' ' || partition_index as claim from history.claims`,
    );
    const claimed = new Set(claims.map(({ claim }) => claim));
    const { rows: traces } = await this.client.query('select trace_id, partition_index from journal_traces');
    const partitions = new Map(traces.map((row) => [String(row.trace_id), Number(row.partition_index)]));
    const writers = new Map<string, string>();
    for (const { writer, key } of this.puts) {
      const [, traceId = '', digits] = KEY.exec(key) ?? [];
      const generation = Number(digits);
      if (!claimed.has(`${writer} ${generation} ${partitions.get(traceId)}`)) {
        problems.push(`${writer} has put ${key}, and has not had the partition in that generation`);
      }
      if ((writers.get(key) ?? writer) !== writer) problems.push(`${writers.get(key)} and ${writer} have put ${key}`);
      writers.set(key, writer);
    }
    const { rows: named } = await this.client.query(
      `select detail, writer from history.writes where kind = 'journal_files'`,
    );
    for (const { detail, writer } of named) {
      if (writers.get(String(detail)) !== writer)
        problems.push(`${writer} has named ${detail} of ${writers.get(detail)}`);
    }
    const ends = await this.ends();
    for (const [end, same] of groupBy(ends, (one) => one.end)) {
      if (same.length > 1) problems.push(`ended ${same.length} times with the same records: ${end}`);
    }
    const counts = await this.client.query(
      'select (select count(*) from history.claims)::int as claims, (select count(*) from history.writes)::int as rows',
    );
    return {
      claimCount: Number(counts.rows[0]?.claims),
      rowCount: Number(counts.rows[0]?.rows),
      objectCount: writers.size,
      endedLaterCount: [...groupBy(ends, ({ traceId }) => traceId).values()].filter(({ length }) => length > 1).length,
      problems,
    };
  }

  /** Each end of a run, once: its row came to it from another state. */
  private async ends(): Promise<readonly { readonly traceId: string; readonly end: string }[]> {
    const { rows } = await this.client.query(`
      with step as (
        select trace_id, detail, lag(detail, 1, '') over (partition by trace_id order by number) as before
        from history.writes where kind = 'runs'
      )
      select trace_id, detail from step where detail like 'finished %' and before not like 'finished %'`);
    return rows.map((row) => ({ traceId: String(row.trace_id), end: `${row.trace_id} ${row.detail}` }));
  }
}

const PUT_BYTE = 'P'.charCodeAt(0);
/** The key of an object of a run: its trace, and the generation of who has put it. */
const KEY = /^runs\/([0-9a-f]{32})\/(\d{10})-/;
