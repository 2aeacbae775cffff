/** One request as llama-swap tells of it while it waits or runs. */
interface InflightRow {
  readonly id?: unknown;
  readonly model?: unknown;
  readonly method?: unknown;
  readonly req_path?: unknown;
  readonly req_headers?: Readonly<Record<string, unknown>>;
}

/** Work that reached the model server without Berth. */
export interface AroundRequest {
  /** As the model server calls it. */
  readonly model: string;
  readonly method: string;
  /** Without query. */
  readonly path: string;
}

/** Marks every request of a job on its way upstream. */
const MARK = 'x-berth-job-id';
/** Ids remembered, so that a request is told of once although it shows again and again. */
const REMEMBERED = 10_000;

/**
 * Notices work that goes around Berth, in the `inflight` messages of `/api/events`: requests without the mark of a job.
 * GET and HEAD are left out, which Berth itself lets pass, and so are models that need no GPU.
 */
export class AroundWatch {
  private readonly needsNoGpu: (model: string) => boolean;
  private readonly onAround: (request: AroundRequest) => void;
  private readonly told = new Set<string>();

  constructor(needsNoGpu: (model: string) => boolean, onAround: (request: AroundRequest) => void) {
    this.needsNoGpu = needsNoGpu;
    this.onAround = onAround;
  }

  /** Takes the data of any event; those of other types are passed over. */
  read(data: string): void {
    if (!data.includes('"inflight"')) return;
    for (const row of rowsOf(data)) this.look(row);
  }

  private look({
    id,
    model,
    method,
    req_path: path,
    req_headers: headers = {},
  }: InflightRow): void {
    if (typeof model !== 'string' || model === '' || typeof id !== 'string') return;
    if (typeof method !== 'string' || typeof path !== 'string' || /^(?:GET|HEAD)$/.test(method))
      return;
    const isOurs = Object.keys(headers).some((name) => name.toLowerCase() === MARK);
    if (isOurs || this.told.has(id) || this.needsNoGpu(model)) return;
    if (this.told.size >= REMEMBERED) this.told.clear();
    this.told.add(id);
    this.onAround({ model, method, path });
  }
}

/** Rows of a snapshot, or the one of an upsert. */
function rowsOf(data: string): InflightRow[] {
  try {
    const message = JSON.parse(data) as { type?: unknown; data?: unknown };
    if (message.type !== 'inflight' || typeof message.data !== 'string') return [];
    const { requests, request } = JSON.parse(message.data) as {
      requests?: InflightRow[] | null;
      request?: InflightRow;
    };
    return [...(requests ?? []), ...(request === undefined ? [] : [request])];
  } catch {
    return [];
  }
}
