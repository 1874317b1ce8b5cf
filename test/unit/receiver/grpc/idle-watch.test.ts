import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { IdleWatch } from '../../../../src/receiver/grpc/grpc-services.js';
import { FakeClock } from '../../../fake/fake-clock.js';

function watched() {
  const clock = new FakeClock();
  const connection = new PassThrough();
  return { clock, connection, watch: new IdleWatch(connection, 1_000, clock) };
}

test('a connection without a call is cut off, not before its time', () => {
  const { clock, connection } = watched();
  clock.advance(999);
  expect(connection.destroyed).toBe(false);
  clock.advance(1);
  expect(connection.destroyed).toBe(true);
});

test('its time begins anew when the last of its calls has ended', () => {
  const { clock, connection, watch } = watched();
  watch.begin();
  watch.begin();
  clock.advance(10_000);
  watch.end();
  clock.advance(10_000);
  watch.end();
  clock.advance(999);
  expect(connection.destroyed).toBe(false);
  clock.advance(1);
  expect(connection.destroyed).toBe(true);
});

test('at the end it waits for calls under way, and no longer than their answers take', () => {
  const { clock, connection, watch } = watched();
  watch.begin();
  watch.drain();
  clock.advance(10_000);
  expect(connection.destroyed).toBe(false);
  watch.end();
  clock.advance(500);
  expect(connection.destroyed).toBe(true);
});
