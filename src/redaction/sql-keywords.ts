/** The meaning of an SQL keyword for finding a statement's verb and relations, as bits. */
export const Keyword = {
  /** Begins a statement. */
  verb: 1,
  /** A verb with an object, as in `CREATE TABLE`. */
  takesObject: 2,
  /** May stand between a verb and its object. */
  modifier: 4,
  object: 8,
  readBefore: 16,
  writtenBefore: 32,
  passedBeforeName: 64,
  /** A function whose brackets may contain a `FROM` that is no clause. */
  fromFunction: 128,
  as: 256,
  into: 512,
  delete: 1024,
  with: 2048,
  /** Begins a statement that reads. */
  reads: 4096,
} as const;

const LISTS: readonly (readonly [bit: number, words: string])[] = [
  [
    Keyword.verb,
    'SELECT INSERT UPDATE DELETE MERGE CREATE ALTER DROP TRUNCATE WITH DESCRIBE SHOW BEGIN COMMIT ROLLBACK GRANT REVOKE COPY CALL USE SET EXPLAIN ANALYZE VACUUM ATTACH DETACH PRAGMA VALUES COMMENT REFRESH OPTIMIZE START END UNLOAD EXECUTE DECLARE',
  ],
  [Keyword.takesObject, 'CREATE ALTER DROP TRUNCATE REFRESH'],
  [
    Keyword.modifier,
    'OR REPLACE TEMP TEMPORARY TRANSIENT UNLOGGED UNIQUE EXTERNAL GLOBAL LOCAL RECURSIVE SECURE DYNAMIC',
  ],
  [Keyword.object, 'TABLE VIEW SCHEMA INDEX DATABASE FUNCTION PROCEDURE MATERIALIZED SEQUENCE STAGE MACRO TYPE'],
  [Keyword.readBefore, 'FROM JOIN INTO'],
  [Keyword.writtenBefore, 'TABLE VIEW UPDATE TRUNCATE'],
  [Keyword.passedBeforeName, 'IF NOT EXISTS ONLY LATERAL TABLE'],
  [Keyword.fromFunction, 'EXTRACT SUBSTRING TRIM POSITION OVERLAY'],
  [Keyword.as, 'AS'],
  [Keyword.into, 'INTO'],
  [Keyword.delete, 'DELETE'],
  [Keyword.with, 'WITH'],
  [Keyword.reads, 'SELECT WITH'],
];

const KEYWORDS = new Map<string, number>();
for (const [bit, words] of LISTS) {
  for (const word of words.split(' ')) KEYWORDS.set(word, (KEYWORDS.get(word) ?? 0) | bit);
}

/** Returns the bits of a word in capitals; 0 if it is no keyword. */
export function keywordOf(upperCaseWord: string): number {
  return KEYWORDS.get(upperCaseWord) ?? 0;
}

/** The suffix that the engine gives a relation while it is being built. */
export const INTERIM = /__dbt_(?:tmp|backup)\d*$/;
/** The most relations in a statement's summary, and the longest summary in characters. */
export const MAX_TARGETS = 5;
export const MAX_SUMMARY_LENGTH = 255;
