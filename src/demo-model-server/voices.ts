import { createHash } from 'node:crypto';
import { tokensOf } from './derive.ts';
import { modelJson, type Endpoint } from './generation.ts';
import { waitFor } from './pace.ts';

const count = 4;

/** `GET` and `POST /v1/audio/voices`: the names of the model's four voices; takes the time of one token. */
export const voices: Endpoint = async ({ answer, model, times }) => {
  await waitFor(times.tokenMs, answer.signal);
  const seed = createHash('sha256').update(model.id).digest();
  const names = [...tokensOf(seed, count)].map(
    (word, index) => `${word.trim().toLowerCase()}-${index + 1}`,
  );
  await answer.send(200, modelJson, JSON.stringify({ voices: names }));
};
