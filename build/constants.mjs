// Keeps constants constant over the borders of chunks. V8 takes a module's own constants for what they are, and folds them into the code that it
// compiles; what a module exports, and what it imports, it reads from a cell each time, and the bytes of the arena with it. So each chunk exports
// copies of its constants, and makes constants of its own of those that it imports. Classes are constants, too: the bundler makes variables of them.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const IMPORTS = /^import \{ ([^}]+) \} from "(\.[^"]+)";$/gm;
const EXPORTS = /^export \{ ([^}]+) \};$/m;
/** What stands before a chunk's code: its imports, and comments between them. */
const HEAD = /^(?:#!.*\n|\/\/.*\n|import .*;\n)*/;

/** Rewrites the chunks of a built folder. */
export function keepConstants(dist) {
  const chunks = new Map(
    readdirSync(dist, { recursive: true })
      .map(String)
      .filter((name) => name.endsWith('.js'))
      .map((name) => [
        join(dist, name),
        readFileSync(join(dist, name), 'utf8').replace(/^var (\S+ = class\b)/gm, 'const $1'),
      ]),
  );
  const exported = new Map(Array.from(chunks, ([file, code]) => [file, exportsOf(code)]));
  const isInCycle = (file) => reaches(file, file, chunks);
  for (const [file, code] of chunks) {
    if (isInCycle(file)) throw new Error(`${file} imports itself by others: its constants may not be there yet`);
    writeFileSync(file, withOwnExports(withOwnImports(code, file, exported), exported.get(file)));
  }
}

/** What a chunk exports: the name outside, the name inside and whether that is never assigned again. */
function exportsOf(code) {
  const names = EXPORTS.exec(code)?.[1].split(', ').map(pairOf) ?? [];
  return new Map(names.map(([inside, outside]) => [outside, { inside, isConstant: isConstant(inside, code) }]));
}

function isConstant(name, code) {
  const literal = name.replaceAll('$', '\\$');
  if (new RegExp(`^(?:const|class) ${literal}\\b`, 'm').test(code)) return true;
  const isFunction = new RegExp(`^(?:async )?function\\*? ${literal}\\(`, 'm').test(code);
  return isFunction && !new RegExp(`(?<![\\w.$])${literal} = `).test(code);
}

function withOwnImports(code, file, exported) {
  const constants = [];
  const rewritten = code.replace(IMPORTS, (_line, names, from) => {
    const others = exported.get(join(dirname(file), from)) ?? new Map();
    const kept = names.split(', ').map((name) => {
      const [outside, inside] = pairOf(name);
      if (others.get(outside)?.isConstant !== true) return name;
      constants.push(`const ${inside} = ${inside}$imported;`);
      return `${outside} as ${inside}$imported`;
    });
    return `import { ${kept.join(', ')} } from "${from}";`;
  });
  if (constants.length === 0) return rewritten;
  return rewritten.replace(HEAD, (head) => `${head}${constants.join('\n')}\n`);
}

function withOwnExports(code, exports) {
  const constants = [];
  return code.replace(EXPORTS, (_line, names) => {
    const kept = names.split(', ').map((name) => {
      const [inside, outside] = pairOf(name);
      if (exports.get(outside)?.isConstant !== true) return name;
      constants.push(`const ${inside}$exported = ${inside};`);
      return `${inside}$exported as ${outside}`;
    });
    return [...constants, `export { ${kept.join(', ')} };`].join('\n');
  });
}

/** Both names of `a as b`, or twice that of `a`. */
function pairOf(name) {
  const [first, second = first] = name.split(' as ');
  return [first, second];
}

function reaches(from, to, chunks, seen = new Set()) {
  for (const [, , other] of chunks.get(from)?.matchAll(IMPORTS) ?? []) {
    const next = join(dirname(from), other);
    if (next === to) return true;
    if (seen.has(next)) continue;
    seen.add(next);
    if (reaches(next, to, chunks, seen)) return true;
  }
  return false;
}
