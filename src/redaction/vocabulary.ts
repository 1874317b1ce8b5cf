/**
 * Whether a word is in the vocabulary of messages of the engine and of databases. A text shows these words and the run's names; any other word might be a value and becomes `?`. A word that is
 * missing costs readability, never secrecy.
 */
export function isCommonWord(lowerCaseWord: string): boolean {
  return VOCABULARY.has(lowerCaseWord);
}

const VOCABULARY: ReadonlySet<string> = new Set(
  `
  a about above abort aborted accept access according across action actions active actual adapter adapters add added adding after
  again aggregate aggregates alias aliases all allocate allocated allow allowed already also alter always ambiguous an analysis
  analyze and another any appear appears append apply arg argument arguments array arrays as assert assertion assigned at attach
  attempt attempted attribute attributes authentication authorized auto available away bad base batch be because been before
  begin being below between bigint binary bind binder binding bindings blob block body bool boolean both bound bounds bracket
  break broken buffer build built but by bytes cache cached call called calls can candidate candidates cancel canceled cancelled cancelling cannot
  cast casting casts catalog catalogs cause caused change changed changes char character characters check checking checks child
  clause clauses clean clone close closed code codes column columns command commands commit common compare comparison
  compilation compile compiled compiler compiling complete completed compute concurrent condition config configuration configure
  configured conflict conflicting connect connected connecting connection connections constant constraint constraints contain
  contained containing contains content context contract conversion convert converted converting could couldn count counts cover
  create created creating credentials cross csv current cursor cycle cyclic data database databases date datetime dbt deadlock
  debug decimal declared default defer deferred define defined definition delete deleted denied dependencies dependency depends
  deprecated deprecation describe detail details detected did didn differ difference different dimension directory disabled
  disconnected disk distinct division do does doesn don done double down driver drop dropped due dummy duckdb duplicate duplicated
  duplicates during each either element elements else empty enable enabled end ended ensure enter entity entries entry enum
  ephemeral equal equals error errored errors escape evaluate evaluated evaluating evaluation even every exact exactly exceed
  exceeded exceeds except exception exceptions exclude excluded execute executed executing execution exist existing exists
  expand expect expected expecting expects expired explicit explicitly export expression expressions extension external extra
  extract fail failed failing fails failure failures false fast fatal feature fetch field fields file files filter final find
  finish finished first fix float folder follow following follows for forbidden foreign format found fqn freshness from full
  function functions further generate generated generic get give given got grant grants greater group grouped groups had
  handle handled has have having header help here hint hook hooks host how http https id identifier identifiers if ignore ignored
  ignoring illegal implement implementation implemented implicit implicitly import in include included including incomplete
  inconsistent incorrect incremental index indexes infer inferred info information initialization initialize initialized
  initializing inner input inputs insert inserted inserting install installed instance instead insufficient int integer integers
  internal interrupt interrupted interval into invalid invalidarguments invocation io is isn issue issues it item items its
  jinja job join joined joins json just key keys keyword kind known language large last later latest least left length less level
  like likely limit limits line lines link list lists literal literals load loaded loading local locate located location lock
  locked log logs long longer lookup loop lower macro macros made make manifest manually many map mapping marked match matched
  matches matching materialization materializations materialize materialized materializing max maximum may maybe mean memory merge
  message messages meta metadata method metric metrics microbatch min minimum mismatch missing mode model models modified module
  more most multiple multiplication must name named names namespace natural near need needed needs negative nested network never
  new next no node nodes non none not note nothing now null nullable number numbers numeric object objects occurred of off offset
  old on once one only open opened opening operand operation operations operator optimizer option optional options or order
  original other otherwise out outer output outside over overflow override overwrite own package packages parameter parameters
  parent parse parsed parser parsing part parts partial partition partitions passed path paths per permission permissions phase
  physical place plan planner please point policy pool position possible possibly post postgres pre precision prepare prepared
  present previous primary print prior privilege privileges problem procedure process processed processing production profile
  profiles program project projects property protocol provide provided purpose put python query queries quota quote quoted quotes
  raise raised raising range rate reached read reader reading ready reason receive received reconnect record records recursive
  redefined reduce ref refer reference referenced references referencing refers refresh refused regex region rejected relation
  relations relationship release remote remove removed rename render rendered rendering replace replaced report request
  requested requests require required requires reserved reset resolve resolved resource resources respective response rest
  restart result results retry retrying return returned returning returns revoke right role rollback root row rows rule run running
  runs runtime same save scan schedule schema schemas scope script search second seconds section see seed seeds select selected
  selection selector semantic sequence server service session set sets setting settings several shape should show shown side
  similar simple since single size skip skipped skipping slot smallint snapshot snapshots snowflake so some something source
  sources span spans specific specified specify sql stage stale standard start started starting starts state statement statements static
  status step still stop stopped storage store stored strategy string strings struct struct structure subquery success successful
  successfully such suffix suggestion sum supplied support supported supports sure switch symbol syntax system table tables tag
  tags target task tasks temp temporary test testing tests text than that the their them then there therefore these they thing
  this those thread threads through throw thrown time timed timeout times timestamp timestamptz tinyint to token tokens too total
  trace transaction transactions treat treated treating tried trigger true truncate truncated try trying tuple two type types
  unable unavailable unbound undefined under unexpected unhandled union unique unit unknown unless unnamed unnest unquoted
  unrecognized unreachable unresolved unsafe unset unsigned unspecified unsupported until unused up update updated updates
  upper upstream url usage use used user users uses using utf8 uuid valid validate validated validation value values varchar
  variable variables variant vars version versions via view views violate violated violates violation wait waiting want warehouse
  warn warned warning warnings was wasn way we were what when where whether which while who whole will window with within without
  won word work would write writing written wrong yaml yes yet yml you your zero zone
  int8 int16 int32 int64 int128 hugeint uint8 uint16 uint32 uint64 utinyint usmallint uinteger ubigint float32 float64 real
  decimal128 largeutf8 nanosecond microsecond millisecond nvarchar bit bignumeric datetime2 timestamp_ns timestamp_ms timestamp_s
  timestamp_tz timestamp_ntz timestamp_ltz
  bigquery databricks redshift spark trino athena adbc jdbc odbc arrow parquet core fusion
  add_query get_relation get_relations_by_pattern list_relations list_relations_without_caching get_columns_in_relation get_column_schema_from_query
  rename_relation drop_relation truncate_relation create_schema drop_schema list_schemas check_schema_exists expand_target_column_types
  run_query ref_model dbt_project profiles_yml schema_yml dbt_packages dbt_internal_packages generic_tests target_path
  analyses py md
  api are args began configs contract_type column_name criterion data_type defines definition_type deps dir dispatch docs enforced engine eof
  eval fetched fetching flow html hub information_schema killed layer legacy locally lost migrate mismatch_reason mismatched os pg_catalog
  retries run_results scalar searched seen selectors specification sqlstate telemetry template vendor_code wrote
  catalogexception binderexception arithmetic resource_exhausted deadline_exceeded unauthenticated
  absent absolute accepted acquire acquired acquisition additional affected aggregated ahead all_varchar alone alreadyexists altered ambiguity among
  analyzer any_value anymore apparent applicable applied appropriate area array_agg asc ascii assign assignment associated attached auth authenticated
  authorization auto_detected autocommit autodetected automatic automatically avg backend background backslash backtick backup based batches becoming
  beyond bigserial bitwise blake boundary bounded brace braces bug byte bytea calculated calculation canceling carriage cascade cascaded case casted
  certificate charset chosen class clear client closing coerce coerced coercion collate collation collations combination combined comma commas comment
  comments compatible component composite compressed computed concatenation concurrently conditional conditions conform conjunction conn consider
  considered consistency consistent const constraining constructor consume container contents contiguous control convention convertible correct
  correctly correlated corrupt corrupted cost cte cube cumulative currently cut dangling datatype datatypes date_format datum day days dbdriverfailed
  dbsyntaxinvalid dd decimals decode decoded decoding dedicated deeply deferrable definitions delim delimiter dependent depending depth deref derived
  desc descending descriptor destination detach detached detect detects determine determined different_type digit digits dimensions direct direction
  directly directories disable disallowed discard displayed div division_by_zero domain dot dynamic eager earlier effect element_type elif eligible
  elseif empties enclosed encoded encoding encountered encrypted encryption endfor endif endmacro endpoint endraw ends endsnapshot ensures entire
  enumerated ephemerals equality erroneous escaped established estimate etc evaluates evaluator event events ever exact_type exceeding exclusive
  executor exhausted exited explain exponent exported expr extended extensions factor far features few fewer filename filepath fill filtered filtering
  finalize finds flag float4 float8 floating flush forgot forgotten form formats formatting formed fragment frame freed frequently fresh friendly
  fromclause fulfilled fully gap geometry glob global granted granting grantor greatest grouping guarantee guaranteed gzip hadn hash hasn haven
  headers hexadecimal hh high hour hours httpfs ident identical identify idle ignore_errors ilike immediate immutable implied improper inactive
  incompatible incorrectly indent indentation indexed indexing individual infinite infinity inherit inherited initial initially inline inserts inspect
  instances instruction int2 int4 integer_literal integrity intended interface internalerror interpreted intersect interval_type invalidates
  invalidconfig invaliddata invalidstate invoke invoked invoking ioerror issuer iterable iterables iterate iterating iteration iterator jinjaerror
  joining jsonb jsondecodeerror keeps keyerror lacks lambda larger lateral layout leading leap leave letter letters libpq library lifetime listing
  locale localhost lock_timeout looking looks lookups malformed manager mandatory manual mappings materialised materializes maximal means meant member
  members merging middle might milliseconds minijinja minimal minute minutes mismatches misplaced mixed mm mod modify modifying month months moved
  much multi mutable mutated mutually nameerror naming nan negated neither nesting new_line newer newline newlines nonetype nonexistent nonexisting
  nor normal normalize notation notfound notice notimplemented nth null_padding nulls nullstr numbered numeral numpy nvl obtain obtained occur octal
  odd older onto opaque openssl ordered ordering ordinal ordinality orphan out_of_range outermost outputs outstanding overlap overlapping overlaps
  overloaded owned owner owns padding page pair pairs panic paren parentheses parenthesis partitioned partitioning password passwords past pathlib
  pattern patterns pending percent percentile performed permanent permissible permit permitted persisted persistent pivot plain plus pointer points
  polymorphic port positional positive potential power pragma preceding precise prefix presence preserve prevent prevented previously principal
  produce produced prohibited projection promote proper properly protected proto provider pseudo public publish pushed qualified qualifier qualify
  quantifier quantile quoting radix random ratio raw reach reachable reaching readable really recently recognize recognized recursion redefinition
  reduced redundant refs regexp registered regular reindex rejects relative relevant relid relkind remain remaining remains removal removing renamed
  renaming reparse repeat repeated repeating represent representable representation rerun resolving responding restricted restriction resume resumed
  retain retried retrieve reuse revert reverted rewrite rewritten rolled round rounding routine rowid runnable safe sample sample_size sampling
  savepoint scalar_subquery_error_on_multiple_rows scalars scale scanned scanner scanning search_path searching secure security segment self
  semicolon separated separator separators serial serializable serialization serialize shouldn signature signed silently simultaneously site sizes
  skip_rows slice smaller snake_case sniffed sniffer socket sort sorted sorting space spaces spec specifier specifies specifying split ss ssl stack
  statement_timeout statistics stderr stdin stdout stream streaming strict strict_mode string_literal stringify stripped strptime subclass subject
  subprocess subqueries subscript substitute substring sufficient suggest suggestions superset superuser suppressed surrogate switched symbolic
  synchronous syntactically syntaxerror systemexit tablespace tagged taken takes terminate terminated terminating termination terminator
  timestamp_format timestamps timezone tls today together tool tops tostring traceback trailing transactional transform transition translate traverse
  tree triggered triggers trim trimmed truncation trusted try_cast trycast tuples twice typed typeerror typename typo unary unauthorized unbalanced
  uncaught unclosed uncommitted unconditional undeclared underscore understood unequal unescaped unfinished unhashable unicode unimplemented
  uninitialized uniquely units unittest unixtime unlike unmatched unordered unpack unparsable unpivot unprivileged unreadable unregistered
  unresolvable unsuccessful unsupportedoperation unterminated untyped unwrap updating uppercase upsert uri urls usable usually utc utf utility
  valueerror variadic varint vary varying vendor verbose verify versioned virtual void volatile wasm whitespace width wildcard windows wise worker
  workers wouldn wrap wrapped wrapper writable xml xor year years yielded yyyy yyyymmdd zeros zstd
  addition balanced expectation ones subtraction unbalanced
  t s re ve ll
  `
    .split(/\s+/)
    .filter((word) => word !== ''),
);

/** Words behind which a message puts an identifier in double quotes: `column "x"`. */
export const IDENTIFIER_INTRODUCERS: ReadonlySet<string> = new Set(
  'column columns table tables relation view model seed snapshot schema database function macro node constraint index bindings type role user near name named reference language sequence extension trigger policy parameter attribute mean'.split(
    ' ',
  ),
);

/** Whether a word can become known; numbers cannot. */
export function isLearnable(word: string): boolean {
  const first = word.charCodeAt(0);
  return (first >= LOWER_A && first <= LOWER_Z) || !NUMBER.test(word);
}

const NUMBER = /^[\p{N}_$]+$/u;
const LOWER_A = 0x61;
const LOWER_Z = 0x7a;

/**
 * Returns the offset of the first word from `from` on; the length of the text if there is none. A word is a run of letters, digits, marks, `_` and `$`. A pattern would allocate an object for each
 * word, which costs more than finding it.
 * @param from not inside of a word
 */
export function wordStart(text: string, from: number): number {
  let at = from;
  while (at < text.length && !isWordAt(text, at)) at += unitsAt(text, at);
  return at;
}

/** Returns the end of the word that begins at `start`. */
export function wordEnd(text: string, start: number): number {
  let at = start;
  while (at < text.length && isWordAt(text, at)) at += unitsAt(text, at);
  return at;
}

function isWordAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code < ASCII_CODES ? IS_ASCII_WORD[code] === 1 : WORD_CHAR.test(text.slice(at, at + unitsAt(text, at)));
}

/** Returns the number of UTF-16 units of a character: 2 beyond U+FFFF. */
function unitsAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code < FIRST_SURROGATE || code > LAST_SURROGATE) return 1;
  return (text.codePointAt(at) ?? 0) > LAST_SINGLE_UNIT ? 2 : 1;
}

const WORD_CHAR = /^[\p{L}\p{N}\p{M}_$]$/u;
const ASCII_CODES = 0x80;
const FIRST_SURROGATE = 0xd800;
const LAST_SURROGATE = 0xdfff;
const LAST_SINGLE_UNIT = 0xffff;
/** 1 at the code of each ASCII character that may be part of a word. */
const IS_ASCII_WORD = Uint8Array.from({ length: ASCII_CODES }, (_, code) =>
  WORD_CHAR.test(String.fromCharCode(code)) ? 1 : 0,
);
