import { createHash } from 'node:crypto';
import { sendModelError } from './errors.ts';
import { modelJson, readJsonObject, workMs, type Endpoint, type Generation } from './generation.ts';
import { monotonicMs, waitUntil } from './pace.ts';
import { sampleRate, tone, wavHead } from './wav.ts';

const samplesPerTone = sampleRate / 10;
const mostTones = 600;

/**
 * `POST /v1/audio/speech`: a tenth of a second of sound for each four characters of `input`, in chunks as it is made;
 * the pitch depends on input and voice. `response_format` wav (the default) or pcm.
 */
export const speech: Endpoint = async (generation) => {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  const { answer } = generation;
  const { input, voice = 'default', response_format: format = 'wav' } = fields;
  if (typeof input !== 'string' || input === '') {
    await sendModelError(answer, 400, '"input" must be provided');
    return;
  }
  if (format !== 'wav' && format !== 'pcm') {
    await sendModelError(answer, 400, 'response_format must be wav or pcm');
    return;
  }
  const tones = tonesOf(input, voice);
  answer.head(200, { 'Content-Type': format === 'wav' ? 'audio/wav' : 'audio/pcm' });
  if (format === 'wav') await answer.write(wavHead(2 * samplesPerTone * tones.length));
  const startedMs = monotonicMs();
  const toneMs = speakMs(generation, fields, tones.length) / tones.length;
  for (const [index, pitch] of tones.entries()) {
    await waitUntil(startedMs + (index + 1) * toneMs, answer.signal);
    await answer.write(tone(pitch, samplesPerTone));
  }
  await answer.end();
};

/**
 * `POST /v1/tasks/run`, audio.cpp's: speaks the `text` of its `request`, or a tone of its own for other tasks; a WAV in
 * base64.
 */
export const audioTask: Endpoint = async (generation) => {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  const { answer } = generation;
  const { request } = fields;
  if (typeof request !== 'object' || request === null || Array.isArray(request)) {
    await sendModelError(answer, 400, '"request" must be an object');
    return;
  }
  const { text = '', voice = 'default' } = request as { text?: unknown; voice?: unknown };
  const tones = tonesOf(
    typeof text === 'string' && text !== '' ? text : JSON.stringify(request),
    voice,
  );
  await waitUntil(monotonicMs() + speakMs(generation, fields, tones.length), answer.signal);
  const samples = Buffer.concat(tones.map((pitch) => tone(pitch, samplesPerTone)));
  const audio = Buffer.concat([wavHead(samples.length), samples]).toString('base64');
  const said = { audio, sample_rate: sampleRate, channels: 1 };
  await answer.send(200, modelJson, JSON.stringify(said));
};

/** One token's time for each tone, unless the request chose another time. */
function speakMs(
  { times }: Generation,
  fields: Readonly<Record<string, unknown>>,
  tones: number,
): number {
  return workMs(fields, tones * times.tokenMs, times);
}

/** Pitches in Hz. */
function tonesOf(input: string, voice: unknown): number[] {
  const count = Math.min(mostTones, Math.ceil(input.length / 4));
  return Array.from({ length: count }, (_, index) => {
    const said = JSON.stringify([input, voice, index]);
    return 110 + (createHash('sha256').update(said).digest().readUInt16BE(0) % 660);
  });
}
