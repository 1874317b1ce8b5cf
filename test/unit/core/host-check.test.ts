import { describe, expect, it } from 'vitest';
import { HostCheck, machineNames } from '../../../src/core/http-listener.js';

const check = new HostCheck(['Builder.example.com', 'builder', '.corp.example']);
const LOOPBACK = '127.0.0.1';

describe('a listener at a loopback address', () => {
  it.each([
    'localhost',
    'LOCALHOST:4318',
    'localhost.:4318',
    '127.0.0.1',
    '127.0.0.1:4318',
    '192.168.1.4:80',
    '[::1]',
    '[::1]:4318',
    'host.docker.internal:4318',
    'builder',
    'builder.example.com:4380',
    'any.thing.corp.example',
  ])('answers to %s', (host) => {
    expect(check.findProblem(host, LOOPBACK)).toBeUndefined();
  });

  it.each([
    'evil.example',
    'evil.example:4318',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '127.0.0.1.nip.io:4318',
    'corp.example',
    'notcorp.example',
    'x.builder',
    'a@localhost',
    '[evil.example]',
    '',
  ])('does not answer to %j, on any of its addresses', (host) => {
    for (const address of [LOOPBACK, '127.8.8.8', '::1', '::ffff:127.0.0.1']) {
      expect(check.findProblem(host, address)).toContain('is no name of this address');
    }
  });

  it('takes requests of HTTP/1.0, which need no Host', () => {
    expect(check.findProblem(undefined, LOOPBACK)).toBeUndefined();
  });

  it('shows nothing of a Host that is no name', () => {
    expect(check.findProblem('<script>', LOOPBACK)).toMatch(/^this Host is no name/);
  });
});

it('answers to whatever it is asked for at another address', () => {
  expect(check.findProblem('run-bridge:4318', '172.17.0.2')).toBeUndefined();
});

it('knows the names of its machine: short, qualified, and what its files add', () => {
  const hosts =
    '127.0.0.1 localhost tracker.evil.example\n127.0.1.1 Builder.corp.example builder build # 127.0.0.1 no\n';
  expect(machineNames('builder', hosts, 'nameserver 10.0.0.1\nsearch lan corp.example\n')).toEqual([
    'builder',
    'builder.corp.example',
    'build',
    'builder.lan',
  ]);
  expect(machineNames('web.example.com', '', '')).toEqual(['web.example.com', 'web']);
});
