import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';

const root = new URL('../../', import.meta.url);

/**
 * Turns a program of this folder into one that plain node runs, in a new folder under the temp dir: it
 * starts ten times faster than through a loader. What it imports from src comes from dist.
 *
 * @returns the program's path.
 */
export async function compileProcess(name: string): Promise<string> {
  const source = await readFile(fileURLToPath(new URL(`test/support/${name}`, root)), 'utf8');
  const { code } = await transform(source, {
    filename: name,
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
  });
  const linked = code.replaceAll(
    /(["'])\.\.\/\.\.\/(src\/[^"']+)\.ts\1/g,
    (_, quote: string, file: string) => `${quote}${new URL(`dist/${file}.js`, root).href}${quote}`,
  );
  const folder = await mkdtemp(path.join(tmpdir(), 'berth-program-'));
  const file = path.join(folder, name.replace(/\.ts$/, '.mjs'));
  await writeFile(file, linked);
  return file;
}
