import { createHash } from 'node:crypto';
import { vectorOf } from './derive.ts';
import { sendModelError } from './errors.ts';
import { modelJson, readJsonObject, type Endpoint } from './generation.ts';
import { waitFor } from './pace.ts';

const dimensions = 64;

/** `POST /v1/embeddings`: one vector of 64 numbers for each input; takes the time of one token each. */
export const embeddings: Endpoint = async (generation) => {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  const given = fields.input;
  if (given === undefined || given === null) {
    await sendModelError(generation.answer, 400, '"input" must be provided');
    return;
  }
  const isOneInput = !Array.isArray(given) || typeof given[0] === 'number';
  const inputs = isOneInput ? [given] : (given as unknown[]);
  await waitFor(inputs.length * generation.times.tokenMs, generation.answer.signal);
  const asBase64 = fields.encoding_format === 'base64';
  const data = inputs.map((input, index) => {
    const seed = createHash('sha256').update(JSON.stringify(input)).digest();
    const vector = vectorOf(seed, dimensions);
    const embedding = asBase64
      ? Buffer.from(Float32Array.from(vector).buffer).toString('base64')
      : vector;
    return { object: 'embedding', index, embedding };
  });
  const tokens = Math.ceil(generation.body.length / 4);
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  const answer = { object: 'list', model: generation.asked, data, usage };
  await generation.answer.send(200, modelJson, JSON.stringify(answer));
};
