/** Builds dist: the compiler's output of src and workers, and every other file of src beside it. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const dist = path.join(root, 'dist');
/** Says from which sources dist was made. */
const stampFile = path.join(dist, '.built-from');

/** Files below a folder, relative to it, in a fixed order; none when there is no folder. */
function filesBelow(folder) {
  if (!fs.existsSync(folder)) return [];
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath ?? entry.path, entry.name)))
    .sort();
}

function sourceFiles() {
  return ['src', 'workers'].flatMap((folder) =>
    filesBelow(path.join(root, folder)).map((file) => path.join(folder, file)),
  );
}

/** Changes with anything that dist is made from. */
function sourceHash() {
  const hash = createHash('sha256');
  const settings = [
    'tsconfig.json',
    'tsconfig.build.json',
    'package-lock.json',
    'scripts/build.mjs',
  ];
  for (const file of [...settings, ...sourceFiles()]) {
    hash
      .update(`${file}\0`)
      .update(fs.readFileSync(path.join(root, file)))
      .update('\0');
  }
  return hash.digest('hex');
}

/** Whether dist is what a build would make. */
export function isBuilt() {
  return fs.existsSync(stampFile) && fs.readFileSync(stampFile, 'utf8') === sourceHash();
}

/**
 * Builds in place, so that processes running from dist never find a file missing, and then removes what
 * no source stands behind any more.
 *
 * @returns {boolean} whether it worked; the compiler has said what did not.
 */
export function build() {
  const hash = sourceHash();
  fs.rmSync(stampFile, { force: true });
  const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
  const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) return false;
  const wanted = new Set();
  for (const file of sourceFiles()) {
    if (file.endsWith('.ts')) {
      const output = file.replace(/\.ts$/, '.js');
      wanted.add(output).add(`${output}.map`);
    } else {
      wanted.add(file);
      fs.mkdirSync(path.dirname(path.join(dist, file)), { recursive: true });
      fs.copyFileSync(path.join(root, file), path.join(dist, file));
    }
  }
  for (const file of filesBelow(dist)) if (!wanted.has(file)) fs.rmSync(path.join(dist, file));
  fs.writeFileSync(stampFile, hash);
  return true;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.exitCode = build() ? 0 : 1;
}
