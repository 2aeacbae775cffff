/** What a model server lists, in the shapes of llama-swap; each part from a reading of its own. */
export interface ModelLists {
  /** Rows of `/v1/models`. */
  readonly models: readonly ListedModel[];
  /** Rows of the `modelStatus` event, which also names unlisted models. */
  readonly status: readonly ModelStatusRow[];
  /** Ids the active profile replaces; a null or empty target means that the id is not served. */
  readonly pins: Readonly<Record<string, string | null>>;
}

/** One row of `/v1/models`, as far as it is looked at. */
export interface ListedModel {
  readonly id: string;
  readonly meta?: {
    readonly llamaswap?: {
      /** `model`, `alias`, `peer`, `selector` or `profile`. */
      readonly type?: string;
      readonly aliases?: readonly string[];
      /** Of an alias: what it means. */
      readonly modelID?: string;
      readonly peerID?: string;
      /** Of a selector: `pin`, `warm` or `spillover`. */
      readonly strategy?: string;
      readonly targets?: readonly string[];
    };
  };
}

/** One row of `modelStatus`, as far as it is looked at. */
export interface ModelStatusRow {
  readonly id: string;
  /** `stopped`, `starting`, `ready` or `stopping`; empty for a peer's model. */
  readonly state?: string;
  readonly peerID?: string;
  readonly aliases?: readonly string[] | null;
}

/** A chain of names longer than this is taken to go in a circle. */
const LONGEST_CHAIN = 8;

/**
 * Which model an id means, by llama-swap's own rules (its documentation, and its routing at v250). In this order:
 *
 * 1. A pin of the active profile replaces the id.
 * 2. A selector stands for one of its targets: `pin` the first, the others the first that is loaded, else the first.
 * 3. A local model's id is that model; 4. an alias (ids that set parameters included) is the model it belongs to.
 * 5. A peer's model by `peer/model`, or by its bare id when exactly one peer has it.
 */
export class ModelDirectory {
  private readonly pins: ReadonlyMap<string, string | null>;
  private readonly selectors = new Map<string, { strategy: string; targets: readonly string[] }>();
  private readonly states = new Map<string, string>();
  private readonly aliases = new Map<string, string>();
  private readonly peers = new Set<string>();
  private readonly bare = new Map<string, string | undefined>();
  private readonly others = new Set<string>();

  constructor({ models, status, pins }: ModelLists) {
    this.pins = new Map(Object.entries(pins));
    for (const { id, meta } of models) {
      const { type, aliases, modelID, peerID, strategy, targets } = meta?.llamaswap ?? {};
      if (type === 'peer') this.addPeer(id, peerID ?? '');
      else if (type === 'selector') {
        this.selectors.set(id, { strategy: strategy ?? '', targets: targets ?? [] });
      } else if (type === 'alias' && modelID !== undefined) this.aliases.set(id, modelID);
      else if (type === 'profile') this.others.add(id);
      else {
        this.states.set(id, '');
        for (const alias of aliases ?? []) this.aliases.set(alias, id);
      }
    }
    for (const { id, state, peerID, aliases } of status) {
      if ((peerID ?? '') !== '') this.addPeer(id, peerID ?? '');
      else this.states.set(id, state ?? '');
      for (const alias of aliases ?? []) this.aliases.set(alias, id);
    }
  }

  /** Every id the model server answers to. */
  get ids(): string[] {
    const pinned = [...this.pins].filter(([, target]) => isServed(target)).map(([id]) => id);
    const bare = [...this.bare].filter(([, target]) => target !== undefined).map(([id]) => id);
    const all = [...this.states.keys(), ...this.aliases.keys(), ...this.selectors.keys()];
    return [...new Set([...all, ...this.peers, ...bare, ...this.others, ...pinned])].filter((id) =>
      this.has(id),
    );
  }

  /** Whether the model server answers to the id. */
  has(id: string): boolean {
    const pin = this.pins.get(id);
    if (pin !== undefined) return isServed(pin);
    return (
      this.states.has(id) ||
      this.aliases.has(id) ||
      this.selectors.has(id) ||
      this.others.has(id) ||
      this.peerOf(id) !== undefined
    );
  }

  /** The canonical id, `peer/model` for a peer's; an id that is not known is its own. */
  resolve(id: string): string {
    return this.target(this.pinned(id));
  }

  /** Whether the id means a peer's model, which runs on another machine. */
  isPeer(id: string): boolean {
    return this.peers.has(this.resolve(id));
  }

  private pinned(id: string): string {
    const pin = this.pins.get(id);
    return isServed(pin) ? pin : id; // 1
  }

  private target(asked: string): string {
    let id = asked;
    for (let step = 0; step < LONGEST_CHAIN; step += 1) {
      const next = this.selected(id) ?? this.local(id) ?? this.peerOf(id);
      if (next === undefined || next === id) return id;
      id = next;
    }
    return asked;
  }

  private selected(id: string): string | undefined {
    const selector = this.selectors.get(id); // 2
    if (selector === undefined) return undefined;
    const { strategy, targets } = selector;
    const inState = (state: string): string | undefined =>
      targets.find((target) => this.states.get(this.local(target) ?? '') === state);
    const warm = strategy === 'pin' ? undefined : (inState('ready') ?? inState('starting'));
    return warm ?? targets[0];
  }

  private local(id: string): string | undefined {
    return this.states.has(id) ? id : this.aliases.get(id); // 3, 4
  }

  private peerOf(id: string): string | undefined {
    return this.peers.has(id) ? id : this.bare.get(id); // 5
  }

  private addPeer(id: string, peerId: string): void {
    if (this.peers.has(id)) return;
    this.peers.add(id);
    const bare = id.startsWith(`${peerId}/`) ? id.slice(peerId.length + 1) : id;
    this.bare.set(bare, this.bare.has(bare) ? undefined : id);
  }
}

function isServed(target: string | null | undefined): target is string {
  return target !== undefined && target !== null && target !== '';
}
