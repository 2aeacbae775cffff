const width = 100;

/** JSON as the repository's formatter leaves it: two blanks, and short lists of plain values on one line. */
export function jsonText(value: unknown): string {
  return `${write(value, '', 0)}\n`;
}

/** `taken`: characters on the line before and after the value that a list on one line must leave room for. */
function write(value: unknown, indent: string, taken: number): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const inner = `${indent}  `;
  if (!Array.isArray(value)) {
    const entries = Object.entries(value).map(([key, item]) => {
      const name = `${inner}${JSON.stringify(key)}: `;
      return name + write(item, inner, name.length + 1);
    });
    return entries.length === 0 ? '{}' : `{\n${entries.join(',\n')}\n${indent}}`;
  }
  const isPlain = value.every((item) => typeof item !== 'object' || item === null);
  const line = `[${value.map((item) => JSON.stringify(item)).join(', ')}]`;
  if (isPlain && taken + line.length <= width) return line;
  const items = value.map((item) => inner + write(item, inner, inner.length + 1));
  return `[\n${items.join(',\n')}\n${indent}]`;
}
