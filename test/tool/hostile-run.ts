import { sampleLines } from '../fake/sample-run.js';

/** Commands that CI systems and terminals act on, characters that turn text around, and some that are not seen; in one line. */
export const ACTIVE_TEXT =
  `::error::owned ##[error]owned ##vso[task.complete]owned ##teamcity[owned] section_start:1:owned\r\u001b[0K ` +
  `\u009b31mred\b\u061c\u200e\u200f\u2066\u202eevil a\u200bb\u200dc\u2060d\ufeffe\u2028::error::owned`;

/** Whether such a text has come through: a character, line breaks and tabs apart, or a command that is acted on. */
export const STILL_ACTIVE =
  /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}]|[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[a-z][\u200c\u200d]|^\s*::|##\w*\[|section_(?:start|end):\d/mu;

/** Markup, script, an end of what could be around it, workflow commands, terminal escapes, and characters that turn text around. */
export const HOSTILE =
  `</title></style></script><script>alert(1)</script><img src=x onerror=alert(2)>\`\`\`\` \`\`\`\n\`\`\`\n` +
  `::error file=evil::owned%0A::stop-commands::x\r\n::warning::owned ##[error]owned ##vso[task.complete]owned\n</details>\n` +
  `# heading\n[link](javascript:alert(3)) @somebody #1 <https://evil.example> ]]> -- ' " & &lt; | \\| \u001b[31mred\u0007\u0000\u202eevil\ud800 \ufffe\n${ACTIVE_TEXT}`;

/** The lines of a sample whose failed nodes and errors carry a hostile text in their names, files and messages. */
export function hostileLines(): readonly string[] {
  const isHostile = /^(model\.shop\.broken|test\.shop\.status_strict|test\.shop\.orders_customer_warn)/;
  return changedLines((record) => {
    const { attributes } = record;
    if (attributes.raw_command !== undefined) attributes.raw_command = `dbt build ${HOSTILE}`;
    if (isHostile.test(String(attributes.unique_id ?? ''))) {
      for (const name of ['name', 'relative_path', 'identifier', 'schema']) {
        if (attributes[name] !== undefined) attributes[name] = HOSTILE;
      }
      attributes.unique_id = `${attributes.unique_id}${HOSTILE}`;
    }
    if ((record.severity_number ?? 0) >= 17) record.body = HOSTILE;
  });
}

/** The same with 400 KB in the command line, in names of one failed node and in each error. */
export function hugeLines(): readonly string[] {
  const text = HOSTILE.repeat(Math.ceil(400_000 / HOSTILE.length));
  return changedLines((record) => {
    const { attributes } = record;
    if (attributes.raw_command !== undefined) attributes.raw_command = `dbt build ${text}`;
    if (record.event_type.endsWith('.NodeProcessed') && String(attributes.unique_id).startsWith('model.shop.broken')) {
      for (const name of ['name', 'relative_path', 'unique_id']) attributes[name] = `${attributes[name]}${text}`;
    }
    if ((record.severity_number ?? 0) >= 17) record.body = text;
  });
}

interface ChangedRecord {
  readonly event_type: string;
  readonly attributes: Record<string, unknown>;
  readonly severity_number?: number;
  body: string;
}

function changedLines(change: (record: ChangedRecord) => void): readonly string[] {
  return sampleLines('build-mixed-fusion').map((line) => {
    const record: ChangedRecord = JSON.parse(line);
    change(record);
    return JSON.stringify(record);
  });
}
