import * as fs from 'node:fs';
import path from 'node:path';
import { ConfigurationError } from './configuration-error.ts';
import { jsonText } from './json-text.ts';
import type { JsonObject } from './merge-document.ts';
import { checkDocument, readDocumentText } from './read-document.ts';

/** Who reads the file is up to its owner; one that we create is the owner's alone. */
const NEW_FILE_MODE = 0o600;

/**
 * Puts another list of keys into the configuration file and leaves its other settings as they are; a file that does
 * not exist is created. The new file takes the old one's place at once, with its mode and owner, so that whoever reads
 * it meanwhile sees one or the other. `change` is given the entries of `keys` as they stand.
 *
 * @throws {ConfigurationError} when the file before or after the change is refused, and then nothing was written.
 */
export function editKeys<Entry>(file: string, change: (entries: Entry[]) => Entry[]): void {
  const over = readOver(file);
  const edited: JsonObject = { ...over, keys: change((over.keys ?? []) as Entry[]) };
  const { faults } = checkDocument(edited);
  if (faults.length > 0) throw new ConfigurationError(faults);
  replaceFile(file, jsonText(edited));
}

/** The entries of `keys` as they stand in the file; none when it does not exist. Throws as `editKeys` does. */
export function readKeyEntries<Entry>(file: string): Entry[] {
  return (readOver(file).keys ?? []) as Entry[];
}

function readOver(file: string): JsonObject {
  if (!fs.existsSync(file)) return {};
  const text = fs.readFileSync(file, 'utf8');
  const { faults } = readDocumentText(file, text);
  if (faults.length > 0) throw new ConfigurationError(faults);
  return JSON.parse(text.replace(/^\uFEFF/, '')) as JsonObject;
}

function replaceFile(file: string, text: string): void {
  // A link stays a link to the file that is replaced.
  const target = fs.existsSync(file) ? fs.realpathSync(file) : file;
  const old = fs.statSync(target, { throwIfNoEntry: false });
  const beside = `${target}.${process.pid}.new`;
  const handle = fs.openSync(beside, 'wx', NEW_FILE_MODE);
  try {
    if (old !== undefined) {
      const self = fs.fstatSync(handle);
      if (self.uid !== old.uid || self.gid !== old.gid) fs.fchownSync(handle, old.uid, old.gid);
      fs.fchmodSync(handle, old.mode & 0o777);
    }
    fs.writeFileSync(handle, text);
    fs.fsyncSync(handle);
    fs.renameSync(beside, target);
  } catch (error) {
    fs.rmSync(beside, { force: true });
    throw error;
  } finally {
    fs.closeSync(handle);
  }
  syncFolder(path.dirname(target));
}

/** Makes the new name as durable as the file's content. */
function syncFolder(folder: string): void {
  const handle = fs.openSync(folder, 'r');
  try {
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
}
