/** Programs that come from the system's packages. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';

/** What a package's own scripts need and a user's PATH may leave out. */
const systemFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** The path of the first of these programs on PATH, or undefined. */
export function findProgram(...names) {
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter((folder) => folder !== '');
  for (const name of names) {
    for (const folder of folders) {
      const file = path.join(folder, name);
      if (isExecutable(file)) return file;
    }
  }
  return undefined;
}

/**
 * Installs a package with apt-get, where there is one and we are root or sudo asks for no password.
 * Whether it worked is for the caller to see; what apt-get has to say goes to stderr.
 */
export function installByApt(name) {
  if (findProgram('apt-get') === undefined) return;
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status !== 0) return;
  const aptGet = (...args) => {
    const searched = [process.env.PATH, ...systemFolders].join(path.delimiter);
    const settings = [`PATH=${searched}`, 'DEBIAN_FRONTEND=noninteractive'];
    const words = ['env', ...settings, 'apt-get', '-q', ...args];
    const [command, ...rest] = isRoot ? words : ['sudo', '-n', ...words];
    return spawnSync(command, rest, { stdio: ['ignore', 2, 2] }).status === 0;
  };
  console.error(`berth: installing ${name} (apt-get)`);
  // A list that cannot be fetched need not matter for this package.
  aptGet('update');
  const install = [
    '-o',
    'DPkg::Lock::Timeout=300',
    'install',
    '-y',
    '--no-install-recommends',
    name,
  ];
  // A second try: another apt-get may have held the lists, or a mirror may have been slow.
  if (!aptGet(...install) && aptGet('update')) aptGet(...install);
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
