import { expect, it } from 'vitest';
import { withoutFrames } from '../../../src/run/node-outcome.js';

it("an error is reported without the frames of the engine's own code", () => {
  const told =
    "Template not found for macro 'op'\n   0: <unknown>\n   1: <unknown>\n  11: start_thread\n             at ./nptl/pthread_create.c:442:8\n  12: clone3\n             at ./misc/clone3.S:81:0\n";
  expect(withoutFrames(told)).toBe("Template not found for macro 'op'\n");
  expect(withoutFrames('0: <unknown>')).toBe('');
  expect(withoutFrames(`${told}and more\n   0: dbt::main\n   1: main\n`)).toBe(
    "Template not found for macro 'op'\nand more\n",
  );
});

it('what only looks like one is left', () => {
  const plain = 'LINE 10: select a\n  0: not a frame\nrows\n at 10: 0';
  expect(withoutFrames(plain)).toBe(plain);
});
