import type { Json } from './component-schemas.ts';

/** Groups of operations, in their order. */
export const tags = {
  jobs: 'Jobs as their clients follow, read and cancel them. Each member sees its own, an administrator all of them.',
  films: 'Chains of requests of which one at a time waits or runs.',
  gateway: 'The queue, the health and the pages of the gateway.',
  gpu: "The model server's routes that need the GPU: each request becomes a job, and the answer is the model server's own.",
} as const;

/** An operation of the document. */
export interface Operation {
  readonly operationId: string;
  readonly tags: readonly [keyof typeof tags];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Json[];
  readonly requestBody?: Json;
  readonly responses: Readonly<Record<string, Json>>;
  /** Empty: no key is needed. */
  readonly security?: readonly [];
}

/** Operations of paths by their methods, in lower case. */
export type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;
