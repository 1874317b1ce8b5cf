"""Writes and reads the public schema's messages with the PyPI package dbt-protos, for test/engine/proto-wire.test.ts.

dbt_protos_wire.py write FILE...   one JSON line for each message and variant of it: file, message, json, hex
dbt_protos_wire.py read FILE...    takes lines {"message", "hex"}, answers with lines of the same form

FILE is a .proto path as `import` spells it. `json` is the message as the engine spells it.
"""

import importlib
import json
import sys

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor as F

UNKNOWN_ENUM_NUMBER = 4711
SCALARS = {
    F.TYPE_STRING: "Zürich \U0001f409 \x00\"\\",
    F.TYPE_BOOL: True,
    F.TYPE_INT32: -(2**31),
    F.TYPE_UINT32: 2**32 - 1,
    F.TYPE_INT64: -(2**63),
    F.TYPE_UINT64: 2**64 - 1,
    F.TYPE_DOUBLE: -1.5e300,
    F.TYPE_BYTES: b"\x00\xff\x80",
}


def messages_of(paths):
    for path in paths:
        module = importlib.import_module(path.removesuffix(".proto").replace("/", ".") + "_pb2")
        for descriptor in module.DESCRIPTOR.message_types_by_name.values():
            yield path, getattr(module, descriptor.name)


def scalar(field, unknown_enums):
    if field.type == F.TYPE_ENUM:
        return UNKNOWN_ENUM_NUMBER if unknown_enums else field.enum_type.values[-1].number
    return SCALARS[field.type]


def fill(message, member, unknown_enums):
    """Sets every field; of a oneof the member with that index."""
    for field in message.DESCRIPTOR.fields:
        oneof = field.containing_oneof
        if oneof is not None and len(oneof.fields) > 1 and oneof.fields[member % len(oneof.fields)] is not field:
            continue
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            entry = field.message_type.fields_by_name["value"]
            for key in ("b", "ä"):
                if entry.message_type is not None:
                    fill(value[key], member, unknown_enums)
                else:
                    value[key] = scalar(entry, unknown_enums)
        elif field.is_repeated:
            value.extend([scalar(field, unknown_enums), scalar(field, unknown_enums)])
        elif field.message_type is not None:
            value.SetInParent()
            fill(value, member, unknown_enums)
        else:
            setattr(message, field.name, scalar(field, unknown_enums))


def set_zeros(message, member):
    """Sets every field that tells zero from unset to zero."""
    for field in message.DESCRIPTOR.fields:
        oneof = field.containing_oneof
        if oneof is None or (len(oneof.fields) > 1 and oneof.fields[member % len(oneof.fields)] is not field):
            continue
        if field.message_type is not None:
            getattr(message, field.name).SetInParent()
        else:
            setattr(message, field.name, field.default_value)


def variants(make):
    members = max([len(oneof.fields) for oneof in make.DESCRIPTOR.oneofs] + [1])
    # A map's values may have oneofs of their own.
    for member in range(max(members, 4)):
        for unknown_enums in (False, True):
            message = make()
            fill(message, member, unknown_enums)
            yield message
        message = make()
        set_zeros(message, member)
        yield message
    yield make()


def answer(path, message):
    spelt = json_format.MessageToDict(message, preserving_proto_field_name=True)
    if message.DESCRIPTOR.name == "LogMessage" and "original_severity_number" in spelt:
        spelt["original_severity_number"] = message.original_severity_number
    line = {
        "file": path,
        "message": message.DESCRIPTOR.full_name,
        "json": spelt,
        "hex": message.SerializeToString(deterministic=True).hex(),
    }
    print(json.dumps(line))


def write(paths):
    for path, make in messages_of(paths):
        for message in variants(make):
            answer(path, message)


def read(paths):
    known = {make.DESCRIPTOR.full_name: (path, make) for path, make in messages_of(paths)}
    for line in sys.stdin:
        given = json.loads(line)
        path, make = known[given["message"]]
        # What the package does not know is missing in the answer's json.
        answer(path, make.FromString(bytes.fromhex(given["hex"])))


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2:])
