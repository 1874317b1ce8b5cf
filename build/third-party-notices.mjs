import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The licences of the packages that these modules are from, each with its text as the package carries it.
 * @param {readonly string[]} modules absolute paths
 * @throws Error for a package that carries none: then it must not be bundled before somebody has looked
 */
export function thirdPartyNotices(modules) {
  const folders = new Set(modules.flatMap((path) => /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []));
  return [...folders].sort().map(noticeOf).join('\n');
}

function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const texts = readdirSync(folder)
    .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    .map((file) => readFileSync(join(folder, file), 'utf8').trim());
  if (texts.length === 0 && license === undefined) throw new Error(`${name} ${version} says no licence`);
  return `${'='.repeat(80)}\n${name} ${version} (${license})\n\n${texts.join('\n\n') || 'Its package carries no text of its licence.'}\n`;
}
