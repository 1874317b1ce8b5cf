import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

/** A database of a test's own on the server that all share. */
export class TestDatabase {
  /** Makes an empty one; the first of a test run starts the server. */
  static async create(): Promise<TestDatabase> {
    const response = await fetch(inject('postgresStarter'));
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    const name = `test_${randomUUID().replaceAll('-', '')}`;
    await query(text, `create database ${name}`);
    const url = new URL(text);
    url.pathname = `/${name}`;
    return new TestDatabase(text, name, url.href);
  }

  private seeds: readonly string[] | undefined;

  private constructor(
    private readonly serverUrl: string,
    readonly name: string,
    readonly url: string,
  ) {}

  /** Says something to the database. */
  tell(sql: string): Promise<pg.QueryResult> {
    return query(this.url, sql);
  }

  /** Brings every table back to what it held when this was first called. */
  async reset(): Promise<void> {
    if (this.seeds === undefined) {
      const { rows } = await this.tell(`select tablename from pg_tables where schemaname = 'public'`);
      const seeds = rows.map(({ tablename }) => String(tablename));
      await this.tell(
        `create schema seed; ${seeds.map((name) => `create table seed.${name} as table ${name};`).join('')}`,
      );
      this.seeds = seeds;
    }
    await this.tell(this.seeds.map((name) => `delete from ${name}; insert into ${name} table seed.${name};`).join(''));
  }

  /** Removes it, whoever is connected. */
  async drop(): Promise<void> {
    await query(this.serverUrl, `drop database ${this.name} with (force)`);
  }
}

async function query(url: string, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}
