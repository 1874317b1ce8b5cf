"""Compares Parquet files of telemetry, row by row and cell by cell, with pyarrow and with DuckDB.

Usage: parquet_equality.py, with one JSON object a line on standard input: {"theirs": PATH, "ours": PATH, "sameOrder": bool}
Rows are matched by record type, span id and event id, or by their place with sameOrder. JSON cells are compared as JSON:
the engine writes the keys of maps in no order. Prints one JSON object a line: what differs, which should be nothing.
"""

import json
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

JSON_CELLS = {"json_payload"}


def rows(path):
    table = pq.read_table(path)
    # Python's datetime has no nanoseconds.
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.int64()))
    return table.to_pylist()


def key(row):
    return (row["record_type"], row["span_id"], row["event_id"])


def comparable(value, name=""):
    if isinstance(value, dict):
        return {inner: comparable(cell, inner) for inner, cell in value.items()}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return json.loads(value) if name in JSON_CELLS and value is not None else value


def differing_cells(theirs, ours, same_order):
    if same_order:
        pairs = list(zip(theirs, ours))
    else:
        by_key = {key(row): row for row in ours}
        pairs = [(row, by_key.get(key(row), {})) for row in theirs]
    differing = []
    for one, other in pairs:
        one, other = comparable(one), comparable(other)
        if one != other:
            differing.append([one, other])
    return differing


def duckdb_facts(path):
    described = duckdb.execute("describe select * from read_parquet(?)", [path]).fetchall()
    # Order is left out, and the cells whose text may differ while their JSON does not.
    counted = duckdb.execute(
        """
        select record_type, event_type, count(*), count(attributes.json_payload), sum(len(links)),
               count(distinct span_id), min(start_time_unix_nano), max(end_time_unix_nano), sum(attributes.duration_ms),
               list(attributes.unique_id order by attributes.unique_id), bool_or(attributes.sao_enabled)
        from read_parquet(?) group by all order by all
        """,
        [path],
    ).fetchall()
    return described, counted


def compare(theirs, ours, same_order):
    one, other = pq.ParquetFile(theirs), pq.ParquetFile(ours)
    their_rows, our_rows = rows(theirs), rows(ours)
    return {
        "rows": [len(their_rows), len(our_rows)],
        "arrowSchemaEqual": one.schema_arrow.equals(other.schema_arrow, check_metadata=True),
        "parquetSchemaEqual": one.schema.equals(other.schema),
        "keyValuesEqual": one.metadata.metadata == other.metadata.metadata,
        "differingCells": differing_cells(their_rows, our_rows, same_order)[:3],
        "duckdbEqual": duckdb_facts(theirs) == duckdb_facts(ours),
    }


for line in sys.stdin:
    pair = json.loads(line)
    print(json.dumps(compare(pair["theirs"], pair["ours"], pair["sameOrder"]), default=str), flush=True)
