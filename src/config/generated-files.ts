import { defaultDocument } from './default-document.ts';
import { environmentSchema, variableMeta } from './environment-schema.ts';
import { documentJsonSchema, fileJsonSchema } from './json-schema.ts';
import { jsonText } from './json-text.ts';
import { variableNames } from './read-environment.ts';
import { listSettings } from './setting-list.ts';

/** The reference page, whose tables are generated between its marks. */
export const referencePage = 'docs/operations/configuration.md';

const tableMarks = ['environment', 'settings'] as const;

/**
 * Everything in the repository that repeats what the schemas say, by path from its root.
 *
 * @param page - the present text of `referencePage`, of which only the tables are replaced
 * @throws {Error} when a table's marks are missing from the page.
 */
export function generatedFiles(page: string): ReadonlyMap<string, string> {
  return new Map([
    ['berth.config.schema.json', jsonText(fileJsonSchema(defaultDocument))],
    [
      'berth.config.example.json',
      jsonText({ $schema: './berth.config.schema.json', ...defaultDocument }),
    ],
    ['.env.example', environmentExample()],
    [referencePage, tableMarks.reduce(replaceTable, page)],
  ]);
}

function environmentExample(): string {
  const defaults = environmentDefaults();
  return variableNames
    .map((name) => `# ${variableMeta(name).description}\n${name}=${defaults[name]}\n`)
    .join('\n');
}

function replaceTable(page: string, mark: (typeof tableMarks)[number]): string {
  const [open, close] = [`<!-- generated: ${mark} -->`, `<!-- end: ${mark} -->`];
  const [before, rest] = page.split(open);
  const after = rest?.split(close)[1];
  if (before === undefined || after === undefined) {
    throw new Error(`${referencePage} has no marks ${open} and ${close}`);
  }
  const table = mark === 'environment' ? environmentTable() : settingTable();
  return `${before}${open}\n\n${table}\n${close}${after}`;
}

function environmentTable(): string {
  const defaults = environmentDefaults();
  return tableOf(
    ['Variable', 'Value', 'Default', 'Meaning'],
    variableNames.map((name) => {
      const { accepts, description } = variableMeta(name);
      return [`\`${name}\``, accepts, code(defaults[name] || undefined), description];
    }),
  );
}

function settingTable(): string {
  return tableOf(
    ['Setting', 'Value', 'Default', 'Meaning'],
    listSettings(documentJsonSchema(defaultDocument)).map((setting) => [
      `\`${setting.path}\``,
      setting.accepts,
      code(setting.default),
      setting.description,
    ]),
  );
}

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('');
}

function code(text: string | undefined): string {
  return text === undefined ? '' : `\`${text}\``;
}

/** Defaults as they are written in the environment; empty: unset. */
function environmentDefaults(): Record<(typeof variableNames)[number], string> {
  const defaults = Object.entries(environmentSchema.parse({})).map(([name, value]) => {
    if (value === null) return [name, ''];
    return [name, typeof value === 'boolean' ? String(Number(value)) : String(value)];
  });
  return Object.fromEntries(defaults) as Record<(typeof variableNames)[number], string>;
}
