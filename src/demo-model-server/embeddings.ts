import { createHash } from 'node:crypto';
import { vectorOf } from './derive.ts';
import { sendModelError } from './errors.ts';
import { modelJson, readJsonObject, type Endpoint, type Generation } from './generation.ts';
import { waitFor } from './pace.ts';

const dimensions = 64;

/** `POST /v1/embeddings`: one vector of 64 numbers for each input; takes the time of one token each. */
export const embeddings: Endpoint = async (generation) => {
  const found = await embed(generation);
  if (found === undefined) return;
  const data = found.vectors.map((vector, index) => {
    const embedding = found.asBase64
      ? Buffer.from(Float32Array.from(vector).buffer).toString('base64')
      : vector;
    return { object: 'embedding', index, embedding };
  });
  const tokens = generation.used.input;
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  const answer = { object: 'list', model: generation.asked, data, usage };
  await generation.answer.send(200, modelJson, JSON.stringify(answer));
};

/** `POST /embeddings`, llama-server's own: the same vectors in a bare list. */
export const llamaEmbeddings: Endpoint = async (generation) => {
  const found = await embed(generation);
  if (found === undefined) return;
  const list = found.vectors.map((vector, index) => ({ index, embedding: [vector] }));
  await generation.answer.send(200, modelJson, JSON.stringify(list));
};

/** The vectors of a request; undefined when it has been answered with the model's 400. */
async function embed(
  generation: Generation,
): Promise<{ readonly vectors: number[][]; readonly asBase64: boolean } | undefined> {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return undefined;
  const given = fields.input ?? fields.content;
  if (given === undefined || given === null) {
    await sendModelError(generation.answer, 400, '"input" must be provided');
    return undefined;
  }
  const isOneInput = !Array.isArray(given) || typeof given[0] === 'number';
  const inputs = isOneInput ? [given] : (given as unknown[]);
  await waitFor(inputs.length * generation.times.tokenMs, generation.answer.signal);
  generation.used.input = Math.ceil(generation.body.length / 4);
  const vectors = inputs.map((input) => {
    const seed = createHash('sha256').update(JSON.stringify(input)).digest();
    return vectorOf(seed, dimensions);
  });
  return { vectors, asBase64: fields.encoding_format === 'base64' };
}
