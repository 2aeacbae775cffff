/** Samples a second of every sound the demo makes. */
export const sampleRate = 16_000;

const bytesPerSample = 2;

/** The head of a WAV file of one channel and 16 bits, for so many bytes of samples. */
export function wavHead(sampleBytes: number): Buffer {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(head.length - 8 + sampleBytes, 4);
  head.write('WAVEfmt ', 8, 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(sampleRate, 24);
  head.writeUInt32LE(sampleRate * bytesPerSample, 28);
  head.writeUInt16LE(bytesPerSample, 32);
  head.writeUInt16LE(8 * bytesPerSample, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(sampleBytes, 40);
  return head;
}

/** So many samples of a tone of that pitch in Hz, fading in and out. */
export function tone(pitch: number, samples: number): Buffer {
  const sound = Buffer.alloc(samples * bytesPerSample);
  for (let at = 0; at < samples; at += 1) {
    const swell = Math.sin((Math.PI * at) / samples);
    const height = swell * Math.sin((2 * Math.PI * pitch * at) / sampleRate);
    sound.writeInt16LE(Math.round(height * 12_000), at * bytesPerSample);
  }
  return sound;
}
