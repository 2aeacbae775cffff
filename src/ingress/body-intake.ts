import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Transform } from 'node:stream';
import { Busboy } from '@fastify/busboy';
import type { BusboyInstance } from '@fastify/busboy';
import { GatewayError } from '../errors.ts';
import type { BodyStore, BodyWriter } from '../ports/body-store.ts';
import { TopLevelScan } from './top-level-scan.ts';

/** Bodies up to this size travel in Redis beside their job, larger ones through the body store. */
export const INLINE_BYTES = 256 * 1024;

/** A request body that was taken in whole. */
export interface IntakeBody {
  bytes: number;
  sha256: string;
  /** The bytes, when there are at most INLINE_BYTES of them; otherwise they are in the store. */
  inline: Buffer | null;
  model: string | undefined;
  isStream: boolean;
}

/** How bodies are taken in. */
export interface IntakeRules {
  maxBytes: number;
  store: BodyStore;
  /** Whether ingress and worker were proven to share the body store. */
  mayStore: () => boolean;
}

interface ModelFinder {
  /** Resolves when it can take more. */
  push(bytes: Buffer): void | Promise<void>;
  finish(): Promise<void>;
  model(): string | undefined;
  isStream(): boolean;
}

/**
 * Reads a body to its end, in constant memory: counted, hashed, looked through for `model` and `stream`, its bytes
 * kept as they are. A coded body is decoded for the look alone. Throws GatewayError `body_too_large`, `bad_request`
 * (broken coding), `unsupported_encoding` (only if the model can be nowhere else: `mustRead`); a file begun under the
 * job's name is removed then.
 */
export async function takeIn(
  request: IncomingMessage,
  jobId: string,
  rules: IntakeRules,
  mustRead: boolean,
): Promise<IntakeBody> {
  const tooLarge = (): GatewayError =>
    new GatewayError('body_too_large', `the body is larger than ${rules.maxBytes} bytes`);
  if (Number(request.headers['content-length'] ?? 0) > rules.maxBytes) throw tooLarge();
  const bound = { maxBytes: rules.maxBytes, tooLarge };
  const finder = decoded(request, finderFor(request), mustRead, bound);
  const hash = createHash('sha256');
  let kept: Buffer[] = [];
  let bytes = 0;
  let file: BodyWriter | undefined;
  try {
    // Leaving the loop must not destroy the connection: the refusal has to reach the client over it.
    const pieces = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    for await (const piece of pieces) {
      bytes += piece.length;
      if (bytes > rules.maxBytes) throw tooLarge();
      hash.update(piece);
      await finder.push(piece);
      if (file === undefined && bytes > INLINE_BYTES) {
        if (!rules.mayStore()) {
          throw new GatewayError(
            'storage_full',
            'bodies this large need a body store that the worker shares',
            { retryAfterSeconds: 30 },
          );
        }
        file = await rules.store.create(`${jobId}.request`);
        await file.append(Buffer.concat(kept));
        kept = [];
      }
      if (file === undefined) kept.push(piece);
      else await file.append(piece);
    }
    await finder.finish();
    await file?.sync();
  } catch (error) {
    await file?.close();
    if (file !== undefined) await rules.store.removeJobs([jobId]);
    throw error;
  }
  await file?.close();
  return {
    bytes,
    sha256: hash.digest('hex'),
    inline: file === undefined ? Buffer.concat(kept) : null,
    model: finder.model(),
    isStream: finder.isStream(),
  };
}

function finderFor(request: IncomingMessage): ModelFinder {
  const type = request.headers['content-type'] ?? '';
  if (type.includes('application/json')) return jsonFinder();
  if (type.includes('multipart/form-data')) return multipartFinder(request);
  return formFinder(request);
}

function jsonFinder(): ModelFinder {
  const scan = new TopLevelScan(['model', 'stream']);
  return {
    push: (bytes) => scan.push(bytes),
    finish: () => Promise.resolve(),
    model: () => scan.string('model'),
    isStream: () => scan.isTrue('stream'),
  };
}

function multipartFinder(request: IncomingMessage): ModelFinder {
  let model = queryModel(request);
  let parser: BusboyInstance | undefined;
  let onOver = (): void => undefined;
  // A form that cannot be read has no model; its bytes still go to the model server, which says so.
  const over = (): void => {
    parser = undefined;
    onOver();
  };
  try {
    parser = new Busboy({
      headers: { 'content-type': request.headers['content-type'] ?? '' },
      // As in llama-swap: a part with a file name is a file, any other one a value, whatever its type.
      isPartAFile: (_name, _type, fileName) => fileName !== undefined,
    });
    parser.on('field', (name, value) => {
      if (name === 'model') model ??= value;
    });
    parser.on('file', (_name, file) => {
      file.on('error', over);
      file.resume();
    });
    parser.on('error', over);
    parser.on('finish', over);
  } catch {
    parser = undefined;
  }
  return {
    push: (bytes) => {
      if (model === undefined) parser?.write(bytes);
    },
    finish: () =>
      new Promise((resolve) => {
        if (model !== undefined || parser === undefined) {
          resolve();
          return;
        }
        onOver = resolve;
        parser.end();
      }),
    model: () => model,
    isStream: () => false,
  };
}

function formFinder(request: IncomingMessage): ModelFinder {
  const isForm = (request.headers['content-type'] ?? '').includes(
    'application/x-www-form-urlencoded',
  );
  const kept: Buffer[] = [];
  let bytes = 0;
  return {
    push: (piece) => {
      bytes += piece.length;
      if (isForm && bytes <= 1024 * 1024) kept.push(piece);
    },
    finish: () => Promise.resolve(),
    model: () =>
      new URLSearchParams(Buffer.concat(kept).toString()).get('model') ?? queryModel(request),
    isStream: () => false,
  };
}

/** For bodies that nobody here can read. */
const blindFinder: ModelFinder = {
  push: () => undefined,
  finish: async () => Promise.resolve(),
  model: () => undefined,
  isStream: () => false,
};

/** `?model=` of the request line. */
export function queryModel(request: IncomingMessage): string | undefined {
  const query = /\?(.*)$/s.exec(request.url ?? '')?.[1];
  return query === undefined ? undefined : (new URLSearchParams(query).get('model') ?? undefined);
}

function decoderFor(coding: string): Transform | undefined {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'deflate':
      return createInflate();
    case 'br':
      return createBrotliDecompress();
    default:
      return undefined;
  }
}

/** Puts a decoder before the finder when the body is coded; what it expands to is bounded like the body itself. */
function decoded(
  request: IncomingMessage,
  finder: ModelFinder,
  mustRead: boolean,
  { maxBytes, tooLarge }: { maxBytes: number; tooLarge: () => GatewayError },
): ModelFinder {
  const coding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (coding === 'identity' || coding === '') return finder;
  const decoder = decoderFor(coding);
  if (decoder === undefined) {
    if (!mustRead) return blindFinder;
    throw new GatewayError(
      'unsupported_encoding',
      'the body is in a coding that is not gzip, deflate or br',
    );
  }
  let expanded = 0;
  let failure: GatewayError | undefined;
  const ended = new Promise<void>((resolve) => {
    decoder.on('data', (piece: Buffer) => {
      expanded += piece.length;
      if (expanded > maxBytes) {
        failure ??= tooLarge();
        decoder.destroy();
        resolve();
      } else void finder.push(piece);
    });
    decoder.on('end', resolve);
    decoder.on('error', () => {
      failure ??= new GatewayError('bad_request', 'the body does not match its Content-Encoding');
      resolve();
    });
  });
  return {
    push: async (bytes) => {
      if (failure !== undefined) throw failure;
      if (!decoder.write(bytes)) await Promise.race([drained(decoder), ended]);
    },
    finish: async () => {
      decoder.end();
      await ended;
      if (failure !== undefined) throw failure;
      await finder.finish();
    },
    model: () => finder.model(),
    isStream: () => finder.isStream(),
  };
}

async function drained(decoder: Transform): Promise<void> {
  await new Promise<void>((resolve) => void decoder.once('drain', resolve));
}
