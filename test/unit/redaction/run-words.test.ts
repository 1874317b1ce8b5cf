import { describe, expect, it } from 'vitest';
import { type FieldType, PublicSchema } from '../../../src/otlp/public-schema.js';
import { KNOWN_EVENTS, KnownNames, MAX_IDENTIFIERS, type RedactionLevel } from '../../../src/redaction/known-names.js';
import { mapBlankLines, mapLines } from '../export/mapping/mapped-bytes.js';
import { mapRun } from '../export/mapping/mapped-run.js';
import { loggedLines } from '../export/mapping/read-sample.js';

const TRACE = '01a1fb8ea78d7281ae8c1be536b674cd';
const FUSION = 'v1.public.events.fusion.';
let lineCount = 0;

function logLine(eventType: string, attributes: object, body = ''): string {
  const time = `179522181334444670${lineCount++ % 10}`;
  return `{"record_type":"LogRecord","trace_id":"${TRACE}","span_id":null,"span_name":null,"event_id":null,"time_unix_nano":"${time}","severity_number":9,"severity_text":"INFO","body":${JSON.stringify(body)},"event_type":"${eventType}","attributes":${JSON.stringify(attributes)}}`;
}

/** A span's end, as the engine writes it. @param id 16 hexadecimal digits */
function endLine(eventType: string, attributes: object, id: string, message?: string): string {
  const status = message === undefined ? 'null' : JSON.stringify({ code: 2, message });
  return `{"record_type":"SpanEnd","trace_id":"${TRACE}","span_id":"${id}","span_name":"a span","parent_span_id":null,"links":null,"start_time_unix_nano":"1795221813344446700","end_time_unix_nano":"1795221813344446709","severity_number":9,"severity_text":"INFO","status":${status},"event_type":"${eventType}","attributes":${JSON.stringify(attributes)}}`;
}

/** What an exporter would write, which is the same whether attributes are copied or put together. */
function exported(lines: readonly string[], redaction: RedactionLevel = 'literals') {
  const log = Buffer.from(`${lines.join('\n')}\n`);
  const options = { redaction };
  expect(mapLines(log, options)).toEqual(mapBlankLines(log, options));
  expect(mapLines(log, options, [1])).toEqual(mapBlankLines(log, options));
  return mapRun(loggedLines(lines), options);
}

describe('texts of events that this version does not know', () => {
  const attributes = {
    explanation: "The frobnicator of shop_eu spun 3 times over 'zqsecret' because it doesn't like \"zqsecret\"",
    detail: { advice: 'Ask ops@zqsecret.example or try zq12 again', hints: ['rewind the gizmo', "'zqsecret'"] },
    parts: [{ remark: 'the left sprocket wobbles at 17' }],
  };
  const shown = {
    explanation: "The frobnicator of shop_eu spun ? times over '?' because it doesn't like \"?\"",
    'detail.advice': 'Ask ? or try ? again',
    'detail.hints': ['rewind the gizmo', "'?'"],
    parts: '[{"remark":"the left sprocket wobbles at ?"}]',
  };

  it('keep their own words, and lose literals, numbers and addresses, on spans and logs alike', () => {
    for (const eventType of [`${FUSION}gizmo.Spun`, 'v1.events.gizmo.Spun']) {
      const first = logLine('x', {});
      const ended = endLine(eventType, attributes, '00000000000000a1');
      const run = exported([
        first,
        ended,
        endLine(eventType, attributes, '00000000000000a2'),
        logLine(eventType, attributes),
      ]);
      expect(run.spans).toHaveLength(2);
      for (const span of run.spans) expect(span.attributes).toMatchObject(shown);
      expect(run.logs.at(-1)?.attributes).toMatchObject(shown);
    }
  });

  it('are messages like any other in events that it knows, and at level statements', () => {
    const known = exported([logLine(`${FUSION}log.LogMessage`, { explanation: 'the frobnicator spun' })]);
    expect(known.logs[0]?.attributes.explanation).toBe('the ?');
    const unknown = exported(
      [logLine(`${FUSION}gizmo.Spun`, { explanation: 'error: frobnicator spun' })],
      'statements',
    );
    expect(unknown.logs[0]?.attributes.explanation).toBe('error');
  });

  it.each([
    ["it says ...zqsecret' as name, 'zqsecret... and stops"],
    ["LINE 3: zqsecret' as name, 'zqsecret"],
    ["the quotes of 'zqsecret do not pair"],
    ["zqsecret' as name, 'zqsecret"],
  ])('are messages like any other where nothing tells what is a value: %s', (explanation) => {
    const run = exported([logLine(`${FUSION}gizmo.Spun`, { explanation })]);
    expect(String(run.logs[0]?.attributes.explanation)).not.toContain('zqsecret');
  });

  it('are those of the events that the public schema lacks', () => {
    const schema = PublicSchema.load();
    const parts = new Set<string>();
    const addParts = (type: FieldType): void => {
      if (type.kind === 'message') parts.add(type.message.fullName);
      if (type.kind === 'map') addParts(type.value);
    };
    for (const name of schema.messageNames)
      for (const field of schema.message(name)?.fields ?? []) addParts(field.type);
    const events = schema.messageNames.filter((name) => name.startsWith(FUSION) && !parts.has(name));
    const lastPart = (name: string) => name.slice(name.lastIndexOf('.') + 1);
    expect([...KNOWN_EVENTS]).toEqual(expect.arrayContaining(events.map(lastPart)));
    expect(schema.messageNames.map(lastPart)).toEqual(expect.arrayContaining([...KNOWN_EVENTS]));
  });
});

describe("identifiers of the run's statements", () => {
  const query = (sql: string, id = '00000000000000b1') =>
    endLine(
      `${FUSION}query.QueryExecuted`,
      { sql, adapter_type: 'duckdb', query_outcome: 'QUERY_OUTCOME_SUCCESS' },
      id,
    );
  const compiled = (sql: string) => logLine(`${FUSION}log.CompiledCode`, { sql, unique_id: 'model.shop.orders' });
  const raised = (body: string) => logLine(`${FUSION}log.UserLogMessage`, {}, body);
  const bodies = (...lines: string[]) => exported([logLine('x', {}), ...lines]).logs.map(({ body }) => body);

  it('are words that its messages keep, whether a query or compiled code has them', () => {
    const statement = 'select customer_id, "Zip Code", "street_name"\nfrom main.raw_customers -- zqcomment';
    for (const line of [query(statement), compiled(statement)]) {
      expect(
        bodies(
          query('select 1', '00000000000000b0'),
          line,
          raised('the customer_id must not be missing'),
          raised('street_name of zqcomment'),
        ).slice(-2),
      ).toEqual(['the customer_id must not be missing', 'street_name of ?']);
    }
  });

  it('stand in quotes only behind a word that says what they are', () => {
    const line = query("select customer_id, closed_at from t where status = 'closed_at'");
    expect(
      bodies(line, raised("the column 'customer_id' must not be missing"), raised("got the value 'customer_id'")).slice(
        -2,
      ),
    ).toEqual(["the column 'customer_id' must not be missing", "got the value '?'"]);
  });

  it('are no literals, nor anything of a statement whose quotes do not pair', () => {
    const lines = [
      query("select 'zqone' as a, E'zqtwo\\n' b, $$zqthree$$ c /* zqfour */ from t where d = 'it''s zqfive'"),
      query("select 'it's zqsix' from zqseven", '00000000000000b2'),
    ];
    const [body] = bodies(...lines, raised('zqone zqtwo zqthree zqfour zqfive zqsix zqseven')).slice(-1);
    expect(body).toBe('?');
  });

  it('are shown in texts of spans that were written before they were known', () => {
    const message = 'the customer_id must not be missing';
    const attributes = { unique_id: 'model.shop.orders', detail_text: message };
    const span = endLine(`${FUSION}phase.PhaseExecuted`, attributes, '00000000000000c1', message);
    const run = exported([logLine('x', {}), span, query('select customer_id from t')]);
    expect(run.spans.find(({ attributes }) => attributes.detail_text !== undefined)?.attributes.detail_text).toBe(
      message,
    );
  });

  it('are remembered as far as there is room, which names of nodes do not share', () => {
    const names = new KnownNames();
    for (let index = 0; index < MAX_IDENTIFIERS; index++) names.learnIdentifier(`column_${index}`);
    names.learnIdentifier('one_too_many');
    names.learn('model.shop.orders');
    expect(['column_0', 'one_too_many', 'orders'].map((word) => names.hasOutsideQuotes(word))).toEqual([
      true,
      false,
      true,
    ]);
    const long = 'x'.repeat(301);
    const others = new KnownNames();
    others.learnIdentifier(long);
    expect(others.hasOutsideQuotes(long)).toBe(false);
  });

  it('are not shown at level statements', () => {
    const run = exported([query('select customer_id from t'), raised('error in customer_id')], 'statements');
    expect(run.logs[0]?.body).toBe('error in');
  });
});
