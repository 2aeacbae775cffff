import { createHash } from 'node:crypto';
import { sendModelError } from './errors.ts';
import { modelJson, readJsonObject, type Endpoint } from './generation.ts';
import { waitFor } from './pace.ts';

/**
 * `POST /v1/rerank` and its other names: a score between 0 and 1 for each of `documents` against `query`, best first,
 * `top_n` of them. With `texts` in place of `documents` the answer is a bare list. Takes the time of a token each.
 */
export const rerank: Endpoint = async (generation) => {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  const { answer, times, used } = generation;
  const isBare = Array.isArray(fields.texts);
  const documents = isBare ? fields.texts : fields.documents;
  const { query, top_n: top = Infinity } = fields;
  if (typeof query !== 'string' || !Array.isArray(documents) || documents.length === 0) {
    await sendModelError(answer, 400, '"query" and "documents" must be provided');
    return;
  }
  if (typeof top !== 'number' || top < 1) {
    await sendModelError(answer, 400, 'top_n must be a number above 0');
    return;
  }
  await waitFor(documents.length * times.tokenMs, answer.signal);
  used.input = Math.ceil(generation.body.length / 4);
  const ranked = documents
    .map((document: unknown, index) => ({ index, score: scoreOf(query, document) }))
    .toSorted((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, top);
  const usage = { prompt_tokens: used.input, total_tokens: used.input };
  const results = ranked.map(({ index, score }) => ({ index, relevance_score: score }));
  const whole = isBare ? ranked : { model: generation.asked, object: 'list', usage, results };
  await answer.send(200, modelJson, JSON.stringify(whole));
};

function scoreOf(query: string, document: unknown): number {
  const hash = createHash('sha256')
    .update(JSON.stringify([query, document]))
    .digest();
  return hash.readUInt32BE(0) / 2 ** 32;
}
