"""Compares Parquet files of telemetry cell by cell, once as pyarrow reads them and once as DuckDB does.

Usage: parquet_equality.py, with one JSON object a line on standard input: {"theirs": PATH, "ours": PATH, "match": HOW}
HOW tells which rows belong together: "ids" (record type, span id and event id, each at most once), "order" (their place in the
file), or "otlp" (all their cells; for a run that came over OTLP, so rows of starts are left out, as are event_id, line and
file, which OTLP does not carry). JSON cells are compared as JSON: the engine writes the keys of maps in no order.
Prints one JSON object a line: what differs, which should be nothing.
"""

import json
import sys

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY = ["record_type", "span_id", "event_id"]
JSON_CELLS = "attributes.json_payload"
NOT_OVER_OTLP = ["event_id", "attributes.line", "attributes.file"]
READERS = {
    "pyarrow": pq.read_table,
    "duckdb": lambda path: duckdb.read_parquet(path).to_arrow_table(),
}


def cells(table, match):
    """A table of plain columns, those inside `attributes` among them, in the order in which rows are compared."""
    flat = table.flatten()
    columns = dict(zip(flat.column_names, flat.columns))
    # As texts where Arrow cannot sort them, or Python's own type cannot hold them (times have nanoseconds).
    for name, column in columns.items():
        if pa.types.is_timestamp(column.type):
            columns[name] = column.cast(pa.int64())
        elif pa.types.is_nested(column.type):
            columns[name] = as_texts(column.to_pylist())
        elif pa.types.is_dictionary(column.type):
            columns[name] = column.cast(column.type.value_type)
    columns[JSON_CELLS] = as_texts([None if cell is None else json.loads(cell) for cell in columns[JSON_CELLS].to_pylist()])
    plain = pa.table(columns)
    if match == "otlp":
        plain = without_what_otlp_lacks(plain)
    if match == "order":
        return plain
    names = KEY if match == "ids" else plain.column_names
    return plain.take(pc.sort_indices(plain, [(name, "ascending") for name in names]))


def without_what_otlp_lacks(table):
    table = table.drop_columns(NOT_OVER_OTLP).filter(pc.not_equal(pc.field("record_type"), "SpanStart"))
    code_line = table.schema.get_field_index("attributes.code_line")
    is_user_log = pc.ends_with(table.column("event_type"), ".UserLogMessage")
    kept = pc.if_else(is_user_log, None, table.column(code_line))  # its `line`
    return table.set_column(code_line, "attributes.code_line", kept)


def as_texts(values):
    texts = [None if value is None else json.dumps(value, sort_keys=True, default=str) for value in values]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def differing_cells(theirs, ours):
    """Column, row and both values; the first few of each column that differs."""
    if theirs.schema != ours.schema or len(theirs) != len(ours):
        return [{"rows": [len(theirs), len(ours)], "sameColumns": theirs.schema == ours.schema}]
    found = []
    for name in theirs.column_names:
        one, other = theirs.column(name), ours.column(name)
        if one.equals(other):
            continue
        pairs = enumerate(zip(one.to_pylist(), other.to_pylist()))
        different = [{"column": name, "row": row, "cells": pair} for row, pair in pairs if pair[0] != pair[1]]
        found += different[:2]
    return found


def repeated_keys(table):
    return len(table) - len(table.select(KEY).group_by(KEY).aggregate([]))


def compare(theirs, ours, match):
    one, other = pq.ParquetFile(theirs), pq.ParquetFile(ours)
    result = {
        "arrowSchemaEqual": one.schema_arrow.equals(other.schema_arrow, check_metadata=True),
        "parquetSchemaEqual": one.schema.equals(other.schema),
        "keyValuesEqual": one.metadata.metadata == other.metadata.metadata,
    }
    for name, read in READERS.items():
        their_cells, our_cells = cells(read(theirs), match), cells(read(ours), match)
        result[name] = {"rowCount": len(our_cells), "differing": differing_cells(their_cells, our_cells)[:5]}
        if match == "ids":
            result[name]["repeatedKeys"] = repeated_keys(our_cells)
    return result


for line in sys.stdin:
    pair = json.loads(line)
    print(json.dumps(compare(pair["theirs"], pair["ours"], pair["match"]), default=str), flush=True)
