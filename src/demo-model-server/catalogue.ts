/** What a model makes; it decides the capabilities the listings show, not which routes it answers. */
export type DemoModelKind = 'chat' | 'image' | 'video' | 'embeddings' | 'audio';

/** One model the demo model server pretends to have on disk. */
export interface DemoModel {
  /** May contain slashes, as `/upstream/<id>/…` allows. */
  readonly id: string;
  readonly kind: DemoModelKind;
  readonly name: string;
  /** Other ids that mean this model. */
  readonly aliases: readonly string[];
  /** Left out of `/v1/models`, served all the same. */
  readonly unlisted?: boolean;
  /** Loaded from the start beside whichever model is resident, without the GPU; as in a persistent group. */
  readonly isApart?: boolean;
  /** The peer that runs it, for a model on another machine: no GPU, no load. Its id is then `peer/model`. */
  readonly peerId?: string;
  /** Tokens; only chat models have one. */
  readonly contextLength?: number;
}

/** Whether its requests need the GPU. */
export function needsGpu(model: DemoModel): boolean {
  return model.peerId === undefined && model.isApart !== true;
}

/** The models served when none are named in the options. */
export const demoModels: readonly DemoModel[] = [
  {
    id: 'demo-chat-small',
    kind: 'chat',
    name: 'Demo chat, small',
    aliases: ['demo-chat'],
    contextLength: 8192,
  },
  {
    id: 'demo-chat-large',
    kind: 'chat',
    name: 'Demo chat, large',
    aliases: [],
    contextLength: 32_768,
  },
  {
    id: 'demo/org-chat',
    kind: 'chat',
    name: 'Demo chat with a slash',
    aliases: [],
    contextLength: 8192,
  },
  { id: 'demo-image', kind: 'image', name: 'Demo image', aliases: [] },
  { id: 'demo-video', kind: 'video', name: 'Demo video', aliases: [] },
  { id: 'demo-embed', kind: 'embeddings', name: 'Demo embeddings', aliases: [] },
  { id: 'demo-audio', kind: 'audio', name: 'Demo transcription', aliases: [] },
  { id: 'comfyui_auto', kind: 'image', name: 'Demo ComfyUI', aliases: [] },
];

/** What `/comfyui/` stands for, as in llama-swap. */
export const comfyModelId = 'comfyui_auto';

/** Another model server whose models this one passes on. */
export interface DemoPeer {
  readonly id: string;
  /** With the ids they have there. */
  readonly models: readonly DemoModel[];
}

/** The peers when none are named in the options. */
export const demoPeers: readonly DemoPeer[] = [
  {
    id: 'demo-peer',
    models: [
      { id: 'remote-chat', kind: 'chat', name: '', aliases: [] },
      { id: 'remote-embed', kind: 'embeddings', name: '', aliases: [] },
    ],
  },
];

/** What `/upstream/<model>/<rest>` addresses. */
export interface UpstreamTarget {
  readonly model: DemoModel;
  /** The id or alias as it stood in the path, percent-decoded. */
  readonly asked: string;
  /** Everything after the model with its leading slash, percent-encoding kept; empty when nothing followed. */
  readonly rest: string;
}

/** Finds models by id, alias or path. */
export class Catalogue {
  /** Those that run here. */
  readonly models: readonly DemoModel[];
  /** Those of peers, by their full ids. */
  readonly peerModels: readonly DemoModel[];
  readonly #byName = new Map<string, DemoModel>();

  /** A peer's model answers to `peer/model`, and to its bare id where no other model does. */
  constructor(models: readonly DemoModel[], peers: readonly DemoPeer[]) {
    this.models = models.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    this.peerModels = peers.flatMap((peer) =>
      peer.models.map((model) => ({
        ...model,
        id: `${peer.id}/${model.id}`,
        name: `${peer.id}: ${model.id}`,
        peerId: peer.id,
      })),
    );
    const bareIds = peers.flatMap((peer) => peer.models.map(({ id }) => id));
    for (const model of this.peerModels) {
      const bare = model.id.slice((model.peerId?.length ?? 0) + 1);
      const isOnlyOne = bareIds.filter((id) => id === bare).length === 1;
      for (const name of isOnlyOne ? [model.id, bare] : [model.id]) this.#byName.set(name, model);
    }
    for (const model of models) {
      for (const name of [model.id, ...model.aliases]) this.#byName.set(name, model);
    }
  }

  /** The model with this id or alias. */
  find(name: string): DemoModel | undefined {
    return this.#byName.get(name);
  }

  /**
   * The model at the start of a raw path such as `/demo/org-chat/v1/videos`: the longest run of segments that
   * names one wins, so an id with a slash is not shadowed by a shorter one.
   */
  findInPath(rawPath: string): UpstreamTarget | undefined {
    const segments = rawPath.slice(1).split('/');
    for (let length = segments.length; length > 0; length -= 1) {
      const asked = segments.slice(0, length).map(decoded).join('/');
      const model = this.#byName.get(asked);
      if (model !== undefined) {
        const rest = segments.slice(length).map((segment) => `/${segment}`);
        return { model, asked, rest: rest.join('') };
      }
    }
    return undefined;
  }
}

/** A path segment without its percent-encoding; left alone when the encoding is broken. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
