import { derive, tokensOf } from './derive.ts';
import { sendModelError } from './errors.ts';
import { formSeed, readForm } from './form.ts';
import { modelJson, type Endpoint } from './generation.ts';
import { waitFor } from './pace.ts';

/** `POST /v1/audio/transcriptions`: invents the text of the uploaded file; `response_format` json or text. */
export const transcriptions: Endpoint = async (generation) => {
  const form = readForm(generation);
  if (!form.some((part) => part.name === 'file')) {
    await sendModelError(generation.answer, 400, 'the form has no "file"');
    return;
  }
  const seed = formSeed(form);
  const { naturalTokens } = derive(seed);
  await waitFor(naturalTokens * generation.times.tokenMs, generation.answer.signal);
  const text = [...tokensOf(seed, naturalTokens)].join('');
  const format = form.find((part) => part.name === 'response_format')?.data.toString('utf8');
  if (format === 'text') {
    await generation.answer.send(200, { 'Content-Type': 'text/plain; charset=utf-8' }, `${text}\n`);
  } else {
    await generation.answer.send(200, modelJson, JSON.stringify({ text }));
  }
};
