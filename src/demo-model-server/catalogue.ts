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
  /** Tokens; only chat models have one. */
  readonly contextLength?: number;
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
  readonly models: readonly DemoModel[];
  readonly #byName = new Map<string, DemoModel>();

  constructor(models: readonly DemoModel[]) {
    this.models = models.toSorted((a, b) => (a.id < b.id ? -1 : 1));
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
