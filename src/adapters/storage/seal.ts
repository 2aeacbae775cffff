import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile, link, rm } from 'node:fs/promises';
import { join } from 'node:path';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Seals request heads, which carry the client's credentials, with AES-256-GCM before they reach Redis.
 * The job's id is bound in, so a sealed head cannot be moved to another job.
 */
export class Seal {
  private readonly key: Buffer;

  constructor(key: Buffer) {
    this.key = key;
  }

  /** Nonce, tag and ciphertext in one buffer. */
  close(jobId: string, plain: Buffer): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.key, nonce).setAAD(Buffer.from(jobId));
    const body = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), body]);
  }

  /** Throws when the buffer was altered, belongs to another job or was sealed with another key. */
  open(jobId: string, sealed: Buffer): Buffer {
    const decipher = createDecipheriv('aes-256-gcm', this.key, sealed.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(jobId))
      .setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([
      decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)),
      decipher.final(),
    ]);
  }
}

/**
 * The key all processes of one data directory share: derived from `secret` if there is one (BERTH_SECRET), else
 * from `seal.key` in the data directory, made at the first start.
 */
export async function loadSeal(dataDir: string, secret: string | undefined): Promise<Seal> {
  return new Seal(await deriveKey(dataDir, secret, 'request heads'));
}

/**
 * What webhooks are signed with, in the form of Standard Webhooks: derived, as the seal's key is, and no way back to
 * that one. It changes with BERTH_SECRET or the key file.
 */
export async function loadWebhookSecret(
  dataDir: string,
  secret: string | undefined,
): Promise<string> {
  return `whsec_${(await deriveKey(dataDir, secret, 'webhooks')).toString('base64')}`;
}

async function deriveKey(
  dataDir: string,
  secret: string | undefined,
  use: string,
): Promise<Buffer> {
  const material = secret === undefined ? await keyFile(dataDir) : Buffer.from(secret);
  return Buffer.from(hkdfSync('sha256', material, 'berth', use, 32));
}

async function keyFile(dataDir: string): Promise<Buffer> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, 'seal.key');
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  // Complete under another name first, so that no process ever reads half a key; the first link wins.
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  await writeFile(draft, randomBytes(32), { mode: 0o600, flush: true });
  try {
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
      await rename(draft, path);
      return readFile(path);
    }
  }
  await rm(draft, { force: true });
  return readFile(path);
}
