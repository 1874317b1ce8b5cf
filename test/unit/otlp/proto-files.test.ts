import { readdirSync, readFileSync } from 'node:fs';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { loadProtoFiles, PROTO_FOLDER } from '../../../src/otlp/proto-files.js';
import { presentSchema } from './present-schema.js';
import { readSchemaJson } from './schema-json.js';

const expected = readSchemaJson('telemetry-schema.json');
const protoPaths = readdirSync(PROTO_FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.proto'))
  .sort();

describe('the public schema as .proto files', () => {
  it('has the same messages, with the same fields', () => {
    expect(presentSchema().messages).toEqual(expected.messages);
  });

  it('has the same enums, with the same values', () => {
    expect(presentSchema().enums).toEqual(expected.enums);
  });

  it('has the same files, and no other', () => {
    expect(protoPaths.filter((path) => path.startsWith('dbtlabs/'))).toEqual(Object.keys(expected.files).sort());
  });

  it.each(Object.entries(expected.files))('%s has the same package and imports, and is proto3', (path, file) => {
    const source = readFileSync(PROTO_FOLDER + path, 'utf8');
    const parsed = protobuf.parse(source, { keepCase: true });
    expect(parsed.package).toBe(file.package);
    expect(parsed.imports ?? []).toEqual(file.imports);
    expect(source).toMatch(/^syntax = "proto3";$/m);
  });

  it('declares every message in the file of its package', () => {
    for (const [path, file] of Object.entries(expected.files)) {
      const { root } = protobuf.parse(readFileSync(PROTO_FOLDER + path, 'utf8'), new protobuf.Root());
      const inPackage = root.lookup(file.package);
      expect(inPackage instanceof protobuf.Namespace && inPackage.nestedArray.length > 0, path).toBe(true);
    }
  });

  it.each(protoPaths)('%s says in one line what each message and enum is', (path) => {
    const lines = readFileSync(PROTO_FOLDER + path, 'utf8').split('\n');
    for (const [index, line] of lines.entries()) {
      if (/^(message|enum|service) /.test(line)) expect(lines[index - 1], line).toMatch(/^\/\/ \S.*\.$/);
    }
  });
});

describe('loadProtoFiles', () => {
  it('finds imports from the proto folder', () => {
    const root = loadProtoFiles(['opentelemetry/proto/collector/logs/v1/logs_service.proto']);
    expect(root.lookupType('opentelemetry.proto.common.v1.AnyValue').fields.stringValue?.id).toBe(1);
  });

  it('names the file that is missing', () => {
    expect(() => loadProtoFiles(['no/such.proto'])).toThrow(/no\/such\.proto/);
  });
});
