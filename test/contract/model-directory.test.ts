import { describe, expect, test } from '@jest/globals';
import { ModelDirectory } from '../../src/adapters/upstream/model-directory.ts';
import type { ModelLists } from '../../src/adapters/upstream/model-directory.ts';

/** One of everything, as llama-swap lists it. */
const lists: ModelLists = {
  models: [
    { id: 'llama', meta: { llamaswap: { type: 'model', aliases: ['gpt'] } } },
    { id: 'gpt', meta: { llamaswap: { type: 'alias', modelID: 'llama' } } },
    { id: 'studio/flux', meta: { llamaswap: { type: 'peer', peerID: 'studio' } } },
    { id: 'studio/shared', meta: { llamaswap: { type: 'peer', peerID: 'studio' } } },
    { id: 'attic/shared', meta: { llamaswap: { type: 'peer', peerID: 'attic' } } },
    { id: 'attic/llama', meta: { llamaswap: { type: 'peer', peerID: 'attic' } } },
    selector('first', 'pin', ['coder', 'llama']),
    selector('best', 'warm', ['coder', 'gpt', 'llama:fast']),
    selector('spill', 'spillover', ['hidden', 'studio/flux']),
    { id: 'pinned', meta: { llamaswap: { type: 'profile' } } },
    { id: 'plain' },
  ],
  status: [
    { id: 'llama', state: 'ready', peerID: '', aliases: ['gpt', 'llama:fast'] },
    { id: 'coder', state: 'stopped', peerID: '' },
    { id: 'hidden', state: 'starting', peerID: '', aliases: null },
    { id: 'studio/flux', peerID: 'studio' },
  ],
  pins: { pinned: 'best', coder: 'gpt', hidden: '', none: null, 'to-peer': 'flux' },
};

function selector(id: string, strategy: string, targets: string[]) {
  return { id, meta: { llamaswap: { type: 'selector', strategy, targets } } };
}

describe('what an id means', () => {
  const directory = new ModelDirectory(lists);

  test.each([
    ['llama', 'llama', 'a model is itself, though a peer has one of that name'],
    ['gpt', 'llama', 'an alias'],
    ['llama:fast', 'llama', 'an alias that sets parameters, known from the model status alone'],
    ['coder', 'llama', 'a pin goes before the model of that name'],
    ['pinned', 'llama', 'a pin may name a selector: the first that is loaded'],
    ['first', 'coder', 'a selector of the kind pin means its first target, loaded or not'],
    ['spill', 'hidden', 'a starting model counts as loaded'],
    ['to-peer', 'studio/flux', 'a pin may name a peer'],
    ['studio/flux', 'studio/flux', 'a peer by its full id'],
    ['flux', 'studio/flux', 'a peer by its bare id'],
    ['attic/llama', 'attic/llama', 'a peer with a local namesake'],
    ['shared', 'shared', 'a bare id of two peers means nothing'],
    ['plain', 'plain', 'a model of a server that says no more than its id'],
    ['nobody', 'nobody', 'an unknown id is its own'],
  ])('%s is %s: %s', (asked, meant) => {
    expect(directory.resolve(asked)).toBe(meant);
  });

  test('only what ends at a peer is a peer', () => {
    const asked = ['flux', 'studio/flux', 'to-peer', 'attic/llama', 'llama', 'shared', 'nobody'];
    expect(asked.filter((id) => directory.isPeer(id))).toEqual(asked.slice(0, 4));
  });

  test('an id pinned to nothing is not served, nor is one nobody has', () => {
    const asked = ['llama', 'pinned', 'first', 'flux', 'hidden', 'none', 'shared', 'nobody'];
    expect(asked.filter((id) => directory.has(id))).toEqual(asked.slice(0, 4));
    expect(directory.ids).toEqual(expect.arrayContaining(asked.slice(0, 4)));
    expect(directory.ids).not.toContain('hidden');
  });

  test('a warm selector with nothing loaded means its first target', () => {
    const cold = new ModelDirectory({ ...lists, status: [], pins: {} });
    expect(cold.resolve('best')).toBe('coder');
  });

  test('names that go in a circle end where they began', () => {
    const models = [selector('a', 'pin', ['b']), selector('b', 'pin', ['a'])];
    expect(new ModelDirectory({ models, status: [], pins: {} }).resolve('a')).toBe('a');
  });
});
