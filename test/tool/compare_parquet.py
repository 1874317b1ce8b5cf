"""Compares a Parquet file of run-bridge with the engine's own file of the same run.

Usage: compare_parquet.py ENGINE OURS
Rows of spans that ended and of log records have to be the same, less what OTLP leaves out: event_id, line and file.
The Arrow schemas have to be equal. Both pyarrow and DuckDB read the files.
"""

import json
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq


def rows(path):
    table = pq.ParquetFile(path).read()
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):  # Python's own times have no nanoseconds
            table = table.set_column(index, field.name, table.column(index).cast(pa.int64()))
    kept = []
    for row in table.to_pylist():
        if row["record_type"] == "SpanStart":
            continue
        row["event_id"] = None
        attributes = row["attributes"]
        attributes["line"] = attributes["file"] = None
        if attributes["json_payload"] is not None:  # the engine writes maps in an order that changes from run to run
            attributes["json_payload"] = json.loads(attributes["json_payload"])
        if row["event_type"].endswith(".UserLogMessage"):
            attributes["code_line"] = None  # its `line`
        kept.append(json.dumps(row, default=str, sort_keys=True))
    return sorted(kept)


def main(engine, ours):
    theirs_schema, our_schema = (pq.ParquetFile(path).schema_arrow for path in (engine, ours))
    assert our_schema.equals(theirs_schema, check_metadata=True), f"{our_schema}\n{theirs_schema}"
    theirs, mine = rows(engine), rows(ours)
    missing = [row for row in theirs if row not in set(mine)]
    extra = [row for row in mine if row not in set(theirs)]
    assert theirs == mine, f"missing {len(missing)}: {missing[:2]}\nextra {len(extra)}: {extra[:2]}"
    query = """
        select event_type, record_type, count(*), count(attributes.unique_id), min(start_time_unix_nano)
        from read_parquet(?) where record_type <> 'SpanStart' group by all order by all
    """
    assert duckdb.execute(query, [engine]).fetchall() == duckdb.execute(query, [ours]).fetchall()
    print(f"{len(mine)} rows are the same")


main(*sys.argv[1:])
