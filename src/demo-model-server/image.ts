import { createHash } from 'node:crypto';
import { derive } from './derive.ts';
import { sendModelError } from './errors.ts';
import { modelJson, readJsonObject, workMs, type Endpoint, type Generation } from './generation.ts';
import { formSeed, readForm } from './form.ts';
import { waitFor } from './pace.ts';
import { paint } from './png.ts';

/** What a picture depends on. */
interface Order {
  /** The prompt, and for an edit the picture given, as one hash. */
  readonly subject: Buffer;
  readonly size: unknown;
  readonly count: unknown;
  readonly ms: number;
}

/** `POST /v1/images/generations`: PNGs in base64 that depend on prompt and size; 256x256 unless a size is given. */
export const imageGenerations: Endpoint = async (generation) => {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  await sendImages(generation, {
    subject: createHash('sha256')
      .update(JSON.stringify(fields.prompt ?? ''))
      .digest(),
    size: fields.size,
    count: fields.n,
    ms: workMs(fields, generation.times.imageMs, generation.times),
  });
};

/** `POST /v1/images/edits`: likewise, from a form; the picture depends on all its fields and files. */
export const imageEdits: Endpoint = async (generation) => {
  const form = readForm(generation);
  const fields = Object.fromEntries(form.map((part) => [part.name, part.data.toString('utf8')]));
  await sendImages(generation, {
    subject: formSeed(form),
    size: fields.size,
    count: fields.n === undefined ? undefined : Number(fields.n),
    ms: generation.times.imageMs,
  });
};

async function sendImages(generation: Generation, order: Order): Promise<void> {
  const size = /^(\d{1,4})x(\d{1,4})$/.exec(
    typeof order.size === 'string' ? order.size : '256x256',
  );
  const [width, height] = [Number(size?.[1] ?? 0), Number(size?.[2] ?? 0)];
  const count = order.count ?? 1;
  if (width < 1 || height < 1 || width > 2048 || height > 2048) {
    await sendModelError(generation.answer, 400, 'size must be WIDTHxHEIGHT, each from 1 to 2048');
    return;
  }
  if (!Number.isInteger(count) || Number(count) < 1 || Number(count) > 8) {
    await sendModelError(generation.answer, 400, 'n must be a whole number from 1 to 8');
    return;
  }
  await waitFor(order.ms * Number(count), generation.answer.signal);
  const data = Array.from({ length: Number(count) }, (_, index) => {
    const seed = createHash('sha256').update(order.subject).update(`${index}`).digest();
    return { b64_json: paint(seed, width, height).toString('base64') };
  });
  const { created } = derive(order.subject);
  await generation.answer.send(
    200,
    modelJson,
    JSON.stringify({ created, data, output_format: 'png' }),
  );
}
