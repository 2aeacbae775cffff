import { createHash } from 'node:crypto';
import { tokensOf } from './derive.ts';
import { sendModelError } from './errors.ts';
import { modelJson, readJsonObject, workMs, type Endpoint, type Generation } from './generation.ts';
import { waitFor } from './pace.ts';
import { paint } from './png.ts';

type Fields = Readonly<Record<string, unknown>>;

const usualSide = 512;
const mostPictures = 8;

/** `POST /sdapi/v1/txt2img`: PNGs in base64 that depend on prompt, size and seed; 512x512 unless sizes are given. */
export const txt2img: Endpoint = async (generation) => {
  const fields = await readJsonObject(generation);
  if (fields !== undefined) await sendPictures(generation, fields, []);
};

/** `POST /sdapi/v1/img2img`: likewise, from the pictures in `init_images` too. */
export const img2img: Endpoint = async (generation) => {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  const given = fields.init_images;
  if (Array.isArray(given) && given.length > 0) await sendPictures(generation, fields, given);
  else await sendModelError(generation.answer, 400, '"init_images" must hold a picture');
};

/** `GET /sdapi/v1/loras`: two that follow from the model. */
export const loras: Endpoint = async ({ answer, model }) => {
  const seed = createHash('sha256').update(model.id).digest();
  const list = [...tokensOf(seed, 2)].map((word, index) => {
    const name = `${word.trim().toLowerCase()}-${index + 1}`;
    return { name, path: `${name}.safetensors` };
  });
  await answer.send(200, modelJson, JSON.stringify(list));
};

async function sendPictures(
  generation: Generation,
  fields: Fields,
  given: readonly unknown[],
): Promise<void> {
  const { answer, times } = generation;
  const { prompt = '', width = usualSide, height = usualSide, batch_size: count = 1 } = fields;
  const isSide = (side: unknown): side is number =>
    Number.isInteger(side) && Number(side) >= 1 && Number(side) <= 2048;
  if (!isSide(width) || !isSide(height)) {
    await sendModelError(answer, 400, 'width and height must be whole numbers from 1 to 2048');
    return;
  }
  if (!Number.isInteger(count) || Number(count) < 1 || Number(count) > mostPictures) {
    await sendModelError(
      answer,
      400,
      `batch_size must be a whole number from 1 to ${mostPictures}`,
    );
    return;
  }
  await waitFor(workMs(fields, times.imageMs, times) * Number(count), answer.signal);
  const subject = JSON.stringify([prompt, fields.negative_prompt ?? '', fields.seed ?? -1, given]);
  const seeds = Array.from({ length: Number(count) }, (_, index) =>
    createHash('sha256').update(subject).update(`${index}`).digest(),
  );
  const images = seeds.map((seed) => paint(seed, width, height).toString('base64'));
  const parameters = { prompt, width, height, batch_size: count };
  const info = { prompt, all_seeds: seeds.map((seed) => seed.readUInt32BE(0)), width, height };
  const said = { images, parameters, info: JSON.stringify(info) };
  await answer.send(200, modelJson, JSON.stringify(said));
}
