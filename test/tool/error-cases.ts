/** The two databases of which real errors are recorded. */
export type ErrorDatabase = 'duckdb' | 'postgres';

/** One mistake in a project, and what a person has to read in the redacted error to find it. */
export interface ErrorCase {
  /** Of the model, unless `path` says otherwise; also the name of the case. */
  readonly name: string;
  /** The file with the mistake. Strings, numbers and comments that are values carry markers (`zq…001`, `7700…`). */
  readonly text: string;
  /** Default `models/<name>.sql`. */
  readonly path?: string;
  /** Further files that the mistake needs. */
  readonly files?: Readonly<Record<string, string>>;
  /** Of the node that fails; default `model.shop.<name>`. */
  readonly uniqueId?: string;
  /** A command of its own, as the mistake ends all of it. */
  readonly command?: readonly string[];
  /** Its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** What has to stand in the redacted text, by database; a case without an entry is not made there. */
  readonly shown: Readonly<Partial<Record<ErrorDatabase, readonly string[]>>>;
}

/** The values that the cases carry, as they would leak. */
export const ERROR_MARKERS = /zq[a-z]+\d{3}|7700\d{4,}/gi;

const both = (...shown: readonly string[]) => ({ duckdb: shown, postgres: shown });

/** Mistakes that each make one node of a common build fail. */
const NODE_CASES: readonly ErrorCase[] = [
  {
    name: 'syntax_keyword',
    text: "select 'zqsyntax001' as label\nfromm {{ ref('orders') }}",
    shown: both('syntax error at or near', 'fromm'),
  },
  {
    name: 'syntax_open_bracket',
    text: "select coalesce(status, 'zqopen001' as label\nfrom {{ ref('orders') }}",
    shown: both('syntax error at or near'),
  },
  {
    name: 'syntax_trailing_and',
    text: "select * from {{ ref('orders') }} where status = 'zqand001' and",
    shown: both('syntax error at or near ")"'),
  },
  {
    name: 'unterminated_string',
    text: "select 'zquntermin001 as label",
    shown: {
      duckdb: ['unterminated quoted string at or near'],
      postgres: ['relation "main.unterminated_string__dbt_tmp" does not exist'],
    },
  },
  {
    name: 'missing_relation',
    text: "select * from orders_x where status = 'zqrelation001'",
    shown: { duckdb: ['Table with name orders_x does not exist'], postgres: ['relation "orders_x" does not exist'] },
  },
  {
    name: 'missing_schema',
    text: "select * from nowhere_land.orders_y where status = 'zqschema001'",
    shown: {
      duckdb: ['nowhere_land', 'does not exist'],
      postgres: ['relation "nowhere_land.orders_y" does not exist'],
    },
  },
  {
    name: 'missing_column',
    text: "select id,\n  status\n, no_such_column from {{ ref('orders') }} where status = 'zqcolumn001'",
    shown: {
      duckdb: ['Referenced column "no_such_column" not found', 'Candidate bindings', ', no_such_column from'],
      postgres: ['column "no_such_column" does not exist', ', no_such_column from'],
    },
  },
  {
    name: 'missing_qualified_column',
    text: "select o.no_such_field from {{ ref('orders') }} as o where o.status = 'zqfield001'",
    shown: {
      duckdb: ['does not have a column named "no_such_field"'],
      postgres: ['column o.no_such_field does not exist'],
    },
  },
  {
    name: 'missing_alias',
    text: "select zz.id from {{ ref('orders') }} as o where o.status = 'zqalias001'",
    shown: {
      duckdb: ['Referenced table "zz" not found', 'Candidate tables'],
      postgres: ['missing FROM-clause entry for table "zz"'],
    },
  },
  {
    name: 'ambiguous_column',
    text: "select id from {{ ref('orders') }} o join {{ ref('customers') }} c on o.customer_id = c.id where c.name = 'zqambig001'",
    shown: { duckdb: ['Ambiguous reference to column name "id"'], postgres: ['column reference "id" is ambiguous'] },
  },
  {
    name: 'missing_function',
    text: "select no_such_function('zqfunction001', 77001234) as x",
    shown: {
      duckdb: ['Scalar Function with name no_such_function does not exist'],
      postgres: ['function no_such_function(unknown, integer) does not exist'],
    },
  },
  {
    name: 'wrong_arguments',
    text: "select substring(ordered_at, 'zqargument001') as x from {{ ref('orders') }}",
    shown: {
      duckdb: ['No function matches the given name and argument types'],
      postgres: ['does not exist', 'No function matches the given'],
    },
  },
  {
    name: 'no_operator',
    text: "select id + ordered_at as x from {{ ref('orders') }} where status = 'zqoperator001' and ordered_at > id",
    shown: {
      duckdb: ['Cannot compare values of type DATE and type INTEGER'],
      postgres: ['operator does not exist: date > integer'],
    },
  },
  {
    name: 'cast_to_integer',
    text: "select cast('zqcast001' as integer) as n",
    shown: {
      duckdb: ["Could not convert string '?' to INT32"],
      postgres: ['invalid input syntax for type integer: "?"'],
    },
  },
  {
    name: 'cast_to_date',
    text: "select cast(status || 'zqdate001' as date) as d from {{ ref('orders') }}",
    shown: {
      duckdb: ['invalid date field format', 'expected format is (YYYY-MM-DD)'],
      postgres: ['invalid input syntax for type date: "?"'],
    },
  },
  {
    name: 'cast_to_json',
    text: "select cast('{zqjson001' as json) as j",
    shown: { duckdb: ['Malformed JSON'], postgres: ['invalid input syntax for type json', 'Token "?" is invalid'] },
  },
  {
    name: 'cast_to_boolean',
    text: "select cast(status || 'zqbool001' as boolean) as b from {{ ref('orders') }}",
    shown: {
      duckdb: ["Could not convert string '?' to BOOL"],
      postgres: ['invalid input syntax for type boolean: "?"'],
    },
  },
  {
    name: 'out_of_range',
    text: 'select cast(77001234 as smallint) as s',
    shown: { duckdb: ['out of range', 'INT16'], postgres: ['smallint out of range'] },
  },
  {
    name: 'integer_overflow',
    text: "select cast(2147483647 as integer) + id as n from {{ ref('orders') }} where status <> 'zqoverflow001'",
    shown: { duckdb: ['Overflow in addition of INT32'], postgres: ['integer out of range'] },
  },
  {
    name: 'division_by_zero',
    text: "select 77001234 / (id - id) as n from {{ ref('orders') }} where status <> 'zqzero001'",
    shown: { postgres: ['division by zero'] },
  },
  {
    name: 'not_grouped',
    text: "select status, amount, count(*) as n from {{ ref('orders') }} where status <> 'zqgroup001' group by status",
    shown: {
      duckdb: ['column "amount" must appear in the GROUP BY clause'],
      postgres: ['column "orders.amount" must appear in the GROUP BY clause or be used in an aggregate function'],
    },
  },
  {
    name: 'aggregate_in_where',
    text: "select status from {{ ref('orders') }} where sum(amount) > 77001234",
    shown: {
      duckdb: ['WHERE clause cannot contain aggregates'],
      postgres: ['aggregate functions are not allowed in WHERE'],
    },
  },
  {
    name: 'window_in_where',
    text: "select status from {{ ref('orders') }} where row_number() over (order by id) = 77001234",
    shown: {
      duckdb: ['WHERE clause cannot contain window functions'],
      postgres: ['window functions are not allowed in WHERE'],
    },
  },
  {
    name: 'union_columns',
    text: "select id, 'zqunion001' as label from {{ ref('orders') }} union all select id from {{ ref('customers') }}",
    shown: {
      duckdb: ['Set operations can only apply to expressions with the same number of result columns'],
      postgres: ['each UNION query must have the same number of columns'],
    },
  },
  {
    name: 'union_types',
    text: "select ordered_at as x from {{ ref('orders') }} where status = 'zqtypes001' union all select id from {{ ref('customers') }}",
    shown: {
      duckdb: ['Unimplemented type for cast (INTEGER -> DATE)'],
      postgres: ['UNION types date and integer cannot be matched'],
    },
  },
  {
    name: 'subquery_columns',
    text: "select * from {{ ref('orders') }} where id in (select id, name from {{ ref('customers') }} where name = 'zqsub001')",
    shown: {
      duckdb: ['Subquery returns ? columns - expected ?'],
      postgres: ['subquery has too many columns'],
    },
  },
  {
    name: 'subquery_rows',
    text: "select (select id from {{ ref('customers') }} where name <> 'zqrows001') as n from {{ ref('orders') }}",
    shown: {
      duckdb: ['More than one row returned by a subquery used as an expression'],
      postgres: ['more than one row returned by a subquery used as an expression'],
    },
  },
  {
    name: 'invalid_regex',
    text: "select regexp_replace(status, '(zqregex001', 'x') as x from {{ ref('orders') }}",
    shown: { duckdb: ['missing )'], postgres: ['invalid regular expression: parentheses () not balanced'] },
  },
  {
    name: 'unknown_type',
    text: "select cast('zqtype001' as no_such_type) as x",
    shown: { duckdb: ['Type with name no_such_type does not exist'], postgres: ['type "no_such_type" does not exist'] },
  },
  {
    name: 'duplicate_column',
    text: "{{ config(materialized='table') }}\nselect id, amount as id from {{ ref('orders') }} where status <> 'zqtwice001'",
    shown: { postgres: ['column "id" specified more than once'] },
  },
  {
    name: 'missing_file',
    text: "select * from read_csv('/tmp/zqfile001.csv')",
    shown: {
      duckdb: ['No files found that match the pattern'],
      postgres: ['function read_csv(unknown) does not exist'],
    },
  },
  {
    name: 'unique_index',
    text: "{{ config(materialized='table', post_hook='create unique index p_dup_pkey on {{ this }} (label)') }}\nselect 'zqunique001' as label from {{ ref('orders') }}",
    shown: {
      duckdb: ['Data contains duplicates on indexed column(s)'],
      postgres: ['could not create unique index "p_dup_pkey"', 'is duplicated'],
    },
  },
  {
    name: 'not_null',
    text: "{{ config(materialized='table') }}\nselect cast(nullif(id, 1) as integer) as id, 'zqnull001' as label from {{ ref('orders') }}",
    files: {
      'models/not_null.yml':
        'models:\n  - name: not_null\n    config: {contract: {enforced: true}}\n    columns:\n      - {name: id, data_type: integer, constraints: [{type: not_null}]}\n      - {name: label, data_type: text}\n',
    },
    shown: {
      duckdb: ['NOT NULL constraint failed', '.id'],
      postgres: ['null value in column "id" of relation', 'violates not-null constraint'],
    },
  },
  {
    name: 'check_amount',
    text: "{{ config(post_hook='alter table {{ this }} add constraint check_small check (amount < 1000)') }}\nselect 77001234 as amount, 'zqcheck001' as label",
    shown: { postgres: ['check constraint "check_small" of relation "check_amount" is violated by some row'] },
  },
  {
    name: 'foreign_key',
    text: "{{ config(materialized='table', post_hook='alter table {{ this }} add constraint fk_customer foreign key (customer_id) references keyed_customers (id)', pre_hook='create table if not exists keyed_customers (id integer primary key)') }}\nselect 77001234 as customer_id, 'zqforeign001' as label",
    shown: {
      postgres: [
        'insert or update on table',
        'violates foreign key constraint "fk_customer"',
        'is not present in table "keyed_customers"',
      ],
    },
  },
  {
    name: 'contract_types',
    text: "{{ config(materialized='table') }}\nselect 'zqcontract001' as amount",
    files: {
      'models/contract_types.yml':
        'models:\n  - name: contract_types\n    config: {contract: {enforced: true}}\n    columns:\n      - {name: amount, data_type: integer}\n      - {name: label, data_type: text}\n',
    },
    shown: both(
      'This model has an enforced contract that failed',
      'amount',
      'data type mismatch',
      'label',
      'missing in definition',
    ),
  },
  {
    name: 'permission',
    text: "select * from vault_items where label = 'zqpermission001'",
    shown: { postgres: ['permission denied for table vault_items'] },
  },
  {
    name: 'permission_schema',
    text: "select * from vault.items where label = 'zqpermission002'",
    shown: { postgres: ['permission denied for schema vault'] },
  },
  {
    name: 'timeout',
    text: "{{ config(materialized='table', pre_hook='set statement_timeout = 200') }}\nselect count(pg_sleep(5)) as n, 'zqtimeout001' as label",
    shown: { postgres: ['canceling statement due to statement timeout'] },
  },
  {
    name: 'pre_hook',
    text: '{{ config(pre_hook="insert into audit_log_x values (\'zqprehook001\')") }}\nselect 1 as id',
    shown: {
      duckdb: ['Table with name audit_log_x does not exist'],
      postgres: ['relation "audit_log_x" does not exist'],
    },
  },
  {
    name: 'post_hook',
    text: '{{ config(post_hook="grant select on {{ this }} to no_such_role -- zqposthook001") }}\nselect 1 as id',
    shown: { postgres: ['role "no_such_role" does not exist'] },
  },
  {
    name: 'already_exists',
    text: "{{ config(pre_hook='create table customers_old as select 1 as id; create table customers_old as select 2 as id') }}\nselect 'zqexists001' as label",
    shown: {
      duckdb: ['Table with name "customers_old" already exists'],
      postgres: ['relation "customers_old" already exists'],
    },
  },
  {
    name: 'undefined_variable',
    text: "select '{{ var('no_such_variable') }}' as x, 'zqvariable001' as y",
    shown: both('no_such_variable', 'models/undefined_variable.sql:1'),
  },
  {
    name: 'query_in_jinja',
    text: '{% set rows = run_query("select no_such_key from " ~ ref(\'orders\') ~ " where status = \'zqrunquery001\'") %}\nselect 1 as id',
    shown: { duckdb: ['Referenced column "no_such_key" not found'], postgres: ['column "no_such_key" does not exist'] },
  },
  {
    name: 'seed_types',
    path: 'seeds/seed_types.csv',
    uniqueId: 'seed.shop.seed_types',
    text: 'id,label\n1,zqseed001\nzqseed002,zqseed003\n',
    files: {
      'seeds/seed_types.yml': 'seeds:\n  - name: seed_types\n    config: {column_types: {id: integer, label: text}}\n',
    },
    shown: {
      duckdb: [
        'CSV Error on Line: 3',
        'Error when converting column "id"',
        'Original Line: ?\n',
        'seeds/seed_types.csv',
      ],
      postgres: ['invalid input syntax for type integer: "?"'],
    },
  },
  {
    name: 'missing_source',
    text: "select * from {{ source('raw', 'events') }} where kind = 'zqsource001'",
    files: { 'models/sources.yml': 'sources:\n  - name: raw\n    schema: raw_data\n    tables: [{name: events}]\n' },
    shown: {
      duckdb: ['Table with name "raw_data.events" does not exist because schema "raw_data" does not exist'],
      postgres: ['relation', 'raw_data.events', 'does not exist'],
    },
  },
];

/** Mistakes that end the whole command, each in a project of its own. */
const COMMAND_CASES: readonly ErrorCase[] = [
  {
    name: 'singular_test',
    path: 'tests/singular_test.sql',
    uniqueId: 'test.shop.singular_test',
    text: "select * from {{ ref('orders') }} where no_such_total > 77001234 and status = 'zqsingular001'",
    command: ['build'],
    shown: {
      duckdb: ['Referenced column "no_such_total" not found'],
      postgres: ['column "no_such_total" does not exist'],
    },
  },
  {
    name: 'raised',
    text: "{{ exceptions.raise_compiler_error('the column customer_id must not be missing: zqraised001') }}",
    command: ['build'],
    shown: both('the column ? must not be missing', 'models/raised.sql'),
  },
  {
    name: 'undefined_macro',
    text: "select {{ no_such_macro('zqmacro001') }} as x",
    command: ['build'],
    shown: both('no_such_macro', 'models/undefined_macro.sql:1'),
  },
  {
    name: 'missing_env_var',
    text: "select '{{ env_var('NO_SUCH_SETTING') }}' as x, 'zqenv001' as y",
    command: ['build'],
    shown: both('NO_SUCH_SETTING', 'models/missing_env_var.sql:1'),
  },
  {
    name: 'jinja_types',
    text: "select\n  {{ 'zqjinja001' + 77001234 }} as x",
    command: ['build'],
    shown: both('models/jinja_types.sql:2', 'unsupported'),
  },
  {
    name: 'jinja_filter',
    text: "select {{ 'zqfilter001' | no_such_filter }} as x",
    command: ['build'],
    shown: both('no_such_filter', 'models/jinja_filter.sql:1'),
  },
  {
    name: 'jinja_syntax',
    text: "select 1 as id\n{% if target.name == 'zqif001' %}\n, 2 as n",
    command: ['build'],
    shown: both('models/jinja_syntax.sql', 'unexpected end of'),
  },
  {
    name: 'missing_ref',
    text: "select * from {{ ref('orders_missing') }} where status = 'zqref001'",
    command: ['build'],
    shown: both('orders_missing', 'models/missing_ref.sql'),
  },
  {
    name: 'bad_yaml',
    path: 'models/bad_yaml.yml',
    text: "models:\n  - name: orders\n    description: 'zqyaml001\n  columns: [\n",
    command: ['parse'],
    shown: both('models/bad_yaml.yml'),
  },
  {
    name: 'cycle_a',
    text: "select * from {{ ref('cycle_b') }} where status = 'zqcycle001'",
    files: { 'models/cycle_b.sql': "select * from {{ ref('cycle_a') }}" },
    command: ['build'],
    shown: both('cycle', 'cycle_a', 'cycle_b'),
  },
  {
    name: 'duplicate_model',
    path: 'models/again/orders.sql',
    text: "select 'zqduplicate001' as label",
    command: ['parse'],
    shown: both("Found duplicate model 'orders'", 'models/orders.sql'),
  },
  {
    name: 'run_start_hook',
    path: 'dbt_project.yml',
    text: 'on-run-start: "insert into run_log_x values (\'zqstart001\')"',
    command: ['run', '--select', 'orders'],
    shown: { duckdb: ['Table with name run_log_x does not exist'], postgres: ['relation "run_log_x" does not exist'] },
  },
  {
    name: 'run_end_hook',
    path: 'dbt_project.yml',
    text: 'on-run-end: "update run_log_y set label = \'zqend001\'"',
    command: ['run', '--select', 'orders'],
    shown: { duckdb: ['Table with name run_log_y does not exist'], postgres: ['relation "run_log_y" does not exist'] },
  },
  {
    name: 'password',
    path: 'models/extra.sql',
    text: 'select 1 as id',
    command: ['run', '--select', 'extra'],
    env: { SHOP_PASSWORD: 'zqpassword001' },
    shown: { postgres: ['password authentication failed for user'] },
  },
  {
    name: 'no_server',
    path: 'models/extra.sql',
    text: 'select 1 as id',
    command: ['run', '--select', 'extra'],
    env: { SHOP_PORT: '1' },
    shown: { postgres: ['Connection refused'] },
  },
  {
    name: 'no_database',
    path: 'models/extra.sql',
    text: 'select 1 as id',
    command: ['run', '--select', 'extra'],
    env: { SHOP_DATABASE: 'no_such_database', SHOP_DB: '/no/such/folder/shop.duckdb' },
    shown: { postgres: ['database "no_such_database" does not exist'], duckdb: ['Cannot open file'] },
  },
  {
    name: 'operation',
    path: 'macros/operation.sql',
    text: '{% macro operation(label) %}{% do run_query("select missing_in_operation from " ~ ref(\'orders\') ~ " where status = \'" ~ label ~ "\'") %}{% endmacro %}',
    command: ['run-operation', 'operation', '--args', '{label: zqoperation001}'],
    shown: {
      duckdb: ['Table with name orders does not exist', 'select missing_in_operation from'],
      postgres: ['column "missing_in_operation" does not exist'],
    },
  },
];

/** All of them. */
export const ERROR_CASES: readonly ErrorCase[] = [...NODE_CASES, ...COMMAND_CASES];

/** The project that the mistakes are put into. */
export const ERROR_PROJECT: Readonly<Record<string, string>> = {
  'dbt_project.yml': 'name: shop\nversion: "1.0"\nprofile: shop\nmodels: {+materialized: table}\n',
  'profiles.yml': `shop:
  target: "{{ env_var('SHOP_TARGET') }}"
  outputs:
    duckdb: {type: duckdb, path: "{{ env_var('SHOP_DB', 'shop.duckdb') }}", schema: main, threads: 2}
    postgres:
      type: postgres
      host: 127.0.0.1
      port: "{{ env_var('SHOP_PORT', '0') | int }}"
      user: shop_user
      password: "{{ env_var('SHOP_PASSWORD', '') }}"
      dbname: "{{ env_var('SHOP_DATABASE', 'shop') }}"
      schema: main
      threads: 2
`,
  'models/orders.sql': `{{ config(materialized='table') }}
select 1 as id, 10 as customer_id, 5 as amount, 'open' as status, cast('2026-01-01' as date) as ordered_at
union all select 2, 11, 7, 'paid', cast('2026-01-02' as date)
`,
  'models/customers.sql': `{{ config(materialized='table') }}
select 10 as id, 'Ann' as name union all select 11, 'Bob'
`,
};
