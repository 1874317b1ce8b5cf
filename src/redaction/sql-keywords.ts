/** What a keyword of SQL tells those who look for a statement's verb and its relations, as bits. */
export const Keyword = {
  /** A statement begins with it. */
  verb: 1,
  /** A verb that another word belongs to, as in `CREATE TABLE`. */
  takesObject: 2,
  /** May stand between the two. */
  modifier: 4,
  object: 8,
  readBefore: 16,
  writtenBefore: 32,
  passedBeforeName: 64,
  /** Its brackets may hold a `FROM` that is no clause. */
  fromFunction: 128,
  as: 256,
  into: 512,
  delete: 1024,
  with: 2048,
  /** A statement that begins with it reads. */
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

/** The bits of a word in capitals; 0 for one that tells nothing. */
export function keywordOf(upperCaseWord: string): number {
  return KEYWORDS.get(upperCaseWord) ?? 0;
}

/** What the engine calls a relation while it is built ends so. */
export const INTERIM = /__dbt_(?:tmp|backup)\d*$/;
/** Relations that a statement's summary names at most, and its longest length in characters. */
export const MAX_TARGETS = 5;
export const MAX_SUMMARY_LENGTH = 255;
