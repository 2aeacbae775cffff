const RATE = 8000;

/** A WAV file of so many seconds: one channel, 16 bits, a tone of 440 Hz. */
export function soundFile(seconds: number): Buffer {
  const samples = RATE * seconds;
  const file = Buffer.alloc(44 + samples * 2);
  file.write('RIFF', 0, 'latin1');
  file.writeUInt32LE(file.length - 8, 4);
  file.write('WAVEfmt ', 8, 'latin1');
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(RATE, 24);
  file.writeUInt32LE(RATE * 2, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write('data', 36, 'latin1');
  file.writeUInt32LE(samples * 2, 40);
  for (let index = 0; index < samples; index += 1) {
    const height = Math.sin((2 * Math.PI * 440 * index) / RATE);
    file.writeInt16LE(Math.round(height * 20_000), 44 + index * 2);
  }
  return file;
}
