/** A request as it goes upstream: the client's own bytes and end-to-end headers. */
export interface ModelServerRequest {
  method: string;
  /** Raw path and query, starting with one slash; never decoded on the way. */
  target: string;
  /** Flat list name, value, name, value; hop-by-hop headers already removed. */
  headers: readonly string[];
  /** The body's exact bytes, or a stream of them with its length if that is known. */
  body: Buffer | { stream: AsyncIterable<Buffer>; bytes: number | undefined } | null;
}

/** The upstream's answer: its head now, its body as it is produced. */
export interface ModelServerAnswer {
  status: number;
  /** Flat list name, value, … as received, hop-by-hop ones included. */
  headers: string[];
  /**
   * Yields pieces as they arrive; not reading applies backpressure. Throws a ModelServerFault of kind
   * `truncated` when the connection breaks before the body's end.
   */
  body: AsyncIterable<Buffer>;
}

/** What went wrong below HTTP. `unreachable`: no byte of an answer came. */
export type ModelServerFaultKind = 'unreachable' | 'truncated' | 'invalid' | 'aborted';

/** Thrown by a ModelServer; `message` names no prompt and no credential. */
export class ModelServerFault extends Error {
  readonly kind: ModelServerFaultKind;

  constructor(kind: ModelServerFaultKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ModelServerFault';
    this.kind = kind;
  }
}

/** The upstream process Berth proxies to (llama-swap, or the demo server). */
export interface ModelServer {
  /** Scheme, host and port, for logs and lock names. */
  readonly origin: string;
  /**
   * Sends one request. No timeout of its own beyond connecting: a generation may be silent for long.
   * Aborting closes the connection, which is how a generation is cancelled upstream.
   */
  call(request: ModelServerRequest, signal: AbortSignal): Promise<ModelServerAnswer>;
}

/** What the model server made of a request to switch to another protocol; `Socket`: a connection, as the process has it. */
export type UpgradeAnswer<Socket> =
  | {
      kind: 'switched';
      /** Flat list of the 101's headers as received. */
      headers: string[];
      /** The connection from here on; whoever gets it closes it. It may be half open. */
      socket: Socket;
    }
  | { kind: 'answered'; answer: ModelServerAnswer };

/** The same process, asked for connections of another protocol (WebSockets). */
export interface ModelServerSockets<Socket> {
  /**
   * Sends one request without a body whose headers ask for an upgrade. Throws ModelServerFault; aborting closes the
   * connection until the answer is there, and means nothing afterwards.
   */
  upgrade(
    request: Pick<ModelServerRequest, 'method' | 'target' | 'headers'>,
    signal: AbortSignal,
  ): Promise<UpgradeAnswer<Socket>>;
}

/** Life of a model's process in llama-swap's words; `unknown`: the model server cannot be read. */
export type ModelState = 'stopped' | 'starting' | 'ready' | 'stopping' | 'unknown';

/** Whether a request would find its model loaded. */
export interface ModelStates {
  /** Asked of the model server itself, for any name of a model. Never rejects. */
  stateOf(modelId: string): Promise<ModelState>;
}

/** What the model server says of its models. */
export interface ModelCatalogue {
  /**
   * Whether the model server knows this id (aliases and unlisted ones included). `unknown` only when its
   * lists were just read and do not name it; `unsure` when they could not be read.
   */
  lookUp(modelId: string): Promise<'known' | 'unknown' | 'unsure'>;
  /**
   * The model an id means: aliases, the active profile's pins and selectors resolved by llama-swap's rules, as far as
   * its lists tell (a selector may choose otherwise in the end). An id that is not known is its own. Answers at once
   * from the last reading; await `lookUp` first where the very first answer must be right.
   */
  resolve(modelId: string): string;
  /** Whether the id means a peer's model, which needs no GPU here; from the last reading, false when in doubt. */
  isPeer(modelId: string): boolean;
}
