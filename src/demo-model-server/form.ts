import { createHash } from 'node:crypto';
import type { Generation } from './generation.ts';
import { readMultipart, type FormPart } from './multipart.ts';

/** The parts of the generation's multipart body; none when it is no multipart body. */
export function readForm(generation: Generation): FormPart[] {
  return readMultipart(generation.body, generation.contentType);
}

/** A hash of what the form says: the boundary, which clients choose at random, does not count. */
export function formSeed(form: readonly FormPart[]): Buffer {
  const hash = createHash('sha256');
  for (const { name, filename, data } of form) {
    hash.update(JSON.stringify([name, filename ?? null, data.length])).update(data);
  }
  return hash.digest();
}
