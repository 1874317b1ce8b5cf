"""Checks the columns of a Parquet file, as pyarrow reads it, against the plan by which its rows were made.

Usage: parquet_columns.py, with one JSON object on standard input: {"files": [PATH…], "plan": PLAN}
The plan is that of `parquet-columns.property.test.ts`; both make the value of a cell from the number of its row alone.
Prints a JSON list of what is wrong, which should be empty.
"""

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq

WIDE_UINT64 = 73_786_976_294_838
WIDE_UINT32 = 2_654_435_761


def value_of(kind, values, row):
    number = {"same": 7, "few": row % 7, "distinct": row}.get(values)
    if kind == "text":
        return f"é{row}".ljust(120, "-") if values == "wide" else f"t{number}"
    if kind == "uint64":
        return row * WIDE_UINT64 if values == "wide" else number
    if kind == "uint32":
        return row * WIDE_UINT32 % 2**32 if values == "wide" else number
    if kind == "int32":
        return row * WIDE_UINT32 % 2**32 - 2**31 if values == "wide" else -number
    if kind == "boolean":
        return row % 3 == 0
    if kind == "spanId":
        return row + 1
    if kind == "links":
        return [link(row, item) for item in range(row % 4)]
    raise ValueError(kind)


def link(row, item):
    return {"trace_id": f"{row + 1:032x}", "span_id": item + 1, "json_payload": json.dumps({"n": row}, separators=(",", ":"))}


def expected_cells(plan, column):
    count = plan["rowCount"]
    shapes = bytearray(count)
    for start, shape in plan["shapes"]:
        shapes[start:] = bytes([shape]) * len(shapes[start:])
    cells = [None] * count
    for start, end, stride in column["runs"]:
        for row in range(start, min(end, count), stride):
            if shapes[row] in column["shapes"]:
                cells[row] = value_of(column["kind"], column["values"], row)
    return cells


def cells_of(table, name):
    parent, _, inner = name.rpartition(".")
    found = table.flatten().column(f"{parent}.{inner}") if parent else table.column(name)
    return (found.cast(found.type.value_type) if pa.types.is_dictionary(found.type) else found).combine_chunks()


def check(files, plan):
    wrong = []
    tables = {path: pq.read_table(path) for path in files}
    for path, table in tables.items():
        if len(table) != plan["rowCount"]:
            wrong.append({"file": path, "rows": len(table)})
    for name, column in plan["columns"].items():
        expected = expected_cells(plan, column)
        for path, table in tables.items():
            found = cells_of(table, name)
            # Arrow cannot make lists of its JSON type out of Python's.
            if not pa.types.is_nested(found.type) and found.equals(pa.array(expected, found.type)):
                continue
            pairs = enumerate(zip(expected, found.to_pylist()))
            differing = [(row, pair) for row, pair in pairs if pair[0] != pair[1]]
            if differing:
                wrong.append({"file": path, "column": name, "count": len(differing), "first": differing[:2]})
    return wrong


job = json.load(sys.stdin)
print(json.dumps(check(job["files"], job["plan"]), default=str))
