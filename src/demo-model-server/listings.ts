import type { Catalogue, DemoModel } from './catalogue.ts';
import type { Profiles } from './profiles.ts';
import type { ModelState, Residency } from './residency.ts';

/** A model that is loaded apart is always ready. */
function stateOf(model: DemoModel, residency: Residency): ModelState {
  return model.isApart === true ? 'ready' : residency.stateOf(model.id);
}

/** A fixed time, so that two listings are equal byte for byte. */
const listedAt = 1_700_000_000;

const modalities: Readonly<Record<DemoModel['kind'], readonly [string, string]>> = {
  chat: ['text', 'text'],
  image: ['text', 'image'],
  video: ['text', 'image'],
  embeddings: ['text', 'text'],
  audio: ['audio', 'text'],
};

function capabilitiesOf(model: DemoModel): object | undefined {
  if (model.kind === 'image') return { image_generation: true };
  if (model.kind === 'audio') return { audio_transcriptions: true };
  return undefined;
}

/** The rows of the `modelStatus` event: the models that run here, then those of peers. */
export function modelStatus(catalogue: Catalogue, residency: Residency): object[] {
  const peers = catalogue.peerModels.map(({ id, peerId }) => ({
    id,
    ...{ name: '', description: '', state: '', unlisted: false, peerID: peerId },
  }));
  const local = catalogue.models.map((model) => ({
    id: model.id,
    name: model.name,
    description: '',
    state: stateOf(model, residency),
    unlisted: model.unlisted === true,
    peerID: '',
    aliases: model.aliases.length > 0 ? model.aliases : undefined,
    capabilities: capabilitiesOf(model),
    context_length: model.contextLength,
  }));
  return [...local, ...peers];
}

/** The answer of `/v1/models`, sorted by id. */
export function listModels(parts: {
  readonly catalogue: Catalogue;
  readonly residency: Residency;
  readonly profiles: Profiles;
}): object {
  const { catalogue, residency, profiles } = parts;
  const bare = (id: string, name: string, facts: object) => ({
    id,
    ...{ object: 'model', created: listedAt, owned_by: 'llama-swap' },
    ...(name === '' ? {} : { name }),
    meta: { llamaswap: facts },
    status: { value: 'unloaded' },
  });
  const peers = catalogue.peerModels.map(({ id, name, peerId }) =>
    bare(id, name, { type: 'peer', peerID: peerId }),
  );
  const pins = Object.keys(profiles.pins)
    .filter((pin) => profiles.pinned(pin) !== '' && catalogue.find(pin) === undefined)
    .map((pin) => bare(pin, '', { type: 'profile' }));
  const listed = catalogue.models.filter((model) => model.unlisted !== true);
  const data = listed.flatMap((model) => {
    const [input, output] = modalities[model.kind];
    const entry = (id: string, facts: object) => ({
      id,
      ...{ object: 'model', created: listedAt, owned_by: 'llama-swap', name: model.name },
      architecture: {
        input_modalities: [input],
        output_modalities: [output],
        modality: `${input}->${output}`,
      },
      capabilities: capabilitiesOf(model),
      context_length: model.contextLength,
      meta: { llamaswap: facts, n_ctx: model.contextLength },
      status: { value: stateOf(model, residency) === 'stopped' ? 'unloaded' : 'loaded' },
    });
    const aliases = model.aliases.length > 0 ? { aliases: model.aliases } : {};
    return [
      entry(model.id, { type: 'model', ...aliases }),
      ...model.aliases.map((alias) => entry(alias, { type: 'alias', modelID: model.id })),
    ];
  });
  const all = [...data, ...peers, ...pins];
  return { object: 'list', data: all.toSorted((a, b) => (a.id < b.id ? -1 : 1)) };
}

/** The answer of `/running`: every model that is not stopped. */
export function listRunning({ models }: Catalogue, residency: Residency): object {
  const running = models
    .filter((model) => stateOf(model, residency) !== 'stopped')
    .map((model) => ({
      model: model.id,
      state: stateOf(model, residency),
      cmd: `demo-model --id ${model.id}`,
      proxy: 'http://localhost:5800',
      ttl: 0,
      name: model.name,
      description: '',
    }));
  return { running };
}
