import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Refusal } from '../../src/cli/command-error.ts';
import {
  folderName,
  notesFileOf,
  openNotes,
  readNotes,
  withFetched,
  writeNotes,
} from '../../src/cli/film-state.ts';
import { readShots, withLine } from '../../src/cli/shots-file.ts';
import { readFilm } from '../../src/ingress/film-request.ts';

const line = (rest: object = {}): string =>
  JSON.stringify({ path: '/v1/images/generations', body: { model: 'flux' }, ...rest });

describe('a file of shots', () => {
  test('is a shot a line; empty lines, a byte-order mark and Windows’ ends of lines do not count', () => {
    const text = `\ufeff${line({ body: { model: 'flux', seed: 1 } })}\r\n\r\n  ${line()}\r\n`;
    const shots = readShots(Buffer.from(text));
    expect(shots.lines).toEqual([1, 3]);
    expect(readFilm(shots.body).map(({ body }) => body)).toEqual([
      { model: 'flux', seed: 1 },
      { model: 'flux' },
    ]);
    expect(readShots(Buffer.from(text))).toEqual(shots);
    expect(readShots(Buffer.from(`${text}\n`)).sha256).not.toBe(shots.sha256);
  });

  test.each<[text: string, why: RegExp]>([
    ['', /has no shots/],
    [`${line()}\n{"path": `, /^line 2 is not JSON: /],
    [`${line()}\n\n[]`, /^line 3: shot: /],
    [`${line()}\n${line({ path: '' })}`, /^line 2: path: /],
    [line({ method: 'BREW' }), /^line 1: method: /],
    [line({ headers: { 'bad name': 'x' } }), /^line 1: headers\.bad name: /],
    [line({ body: 'text' }), /^line 1: body: /],
    [line({ prompt: 'x' }), /^line 1: shot: .*prompt/],
    [line({ take: [{ from: '/a', to: '/b' }] }), /^line 1: take: there is no result before/],
    [`${line()}\n${line({ take: [{ from: 'a', to: '/b' }] })}`, /^line 2: take\[0\]\.from: /],
  ])('is refused with line and field: %j', (text, why) => {
    expect(() => readShots(Buffer.from(text))).toThrow(why);
  });

  test('what Berth says of a shot is said of its line', () => {
    const shots = readShots(Buffer.from(`\n${line()}\n\n${line()}\n`));
    const refusal = (param: string | null): Refusal =>
      new Refusal({ status: 400, code: 'bad_request', param, what: `${param}: names no model` });
    expect(withLine(refusal('shots[1].body.model'), shots).message).toBe(
      'line 4: body.model: names no model',
    );
    const other = refusal(null);
    expect(withLine(other, shots)).toBe(other);
  });
});

describe('the notes of a film', () => {
  let folder: string;
  let file: string;

  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'berth-notes-'));
    file = notesFileOf(path.join(folder, 'shots.jsonl'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test('are there before the film is, and are gone on with', () => {
    const notes = openNotes(file, 'hash', 'http://berth', false);
    expect(notes.film).toBeNull();
    expect(readNotes(file)).toEqual(notes);
    writeNotes(file, { ...notes, film: 'the film' });
    expect(openNotes(file, 'hash', 'http://berth', false)).toEqual({ ...notes, film: 'the film' });
    expect(readdirSync(folder)).toEqual(['shots.jsonl.film.json']);
  });

  test('of other shots or another Berth are refused, unless a new film is wanted, which has another key', () => {
    const notes = openNotes(file, 'hash', 'http://berth', false);
    expect(() => openNotes(file, 'other', 'http://berth', false)).toThrow(/--new/);
    expect(() => openNotes(file, 'hash', 'http://there', false)).toThrow(/http:\/\/berth/);
    expect(openNotes(file, 'hash', 'http://berth', true).key).not.toBe(notes.key);
  });

  test('that cannot be read are left as they are', () => {
    writeFileSync(file, '{"version": 2}');
    expect(() => openNotes(file, 'hash', 'http://berth', false)).toThrow(/no notes of a film/);
    writeFileSync(file, 'not JSON');
    expect(() => readNotes(file)).toThrow(/no notes of a film/);
  });

  test('know by folder what was fetched', () => {
    const notes = openNotes(file, 'hash', 'http://berth', false);
    const one = withFetched(notes, folderName(file, path.join(folder, 'out')), 1, '0001.png');
    const both = withFetched(withFetched(one, 'out', 2, '0002.png'), 'elsewhere', 1, '0001.png');
    expect(both.fetched).toEqual({
      out: { 1: '0001.png', 2: '0002.png' },
      elsewhere: { 1: '0001.png' },
    });
  });
});
