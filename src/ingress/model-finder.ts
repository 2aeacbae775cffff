import type { IncomingMessage } from 'node:http';
import { NO_MODEL } from '../ports/job-queue.ts';
import type { ModelCatalogue, ModelStates } from '../ports/model-server.ts';
import { queryModel } from './body-intake.ts';
import type { IntakeBody } from './body-intake.ts';
import { COMFY_MODEL, upstreamCandidates } from './route-table.ts';
import type { GpuRoute } from './submission.ts';

/** Finds the model of a request by llama-swap's own rules. */
export class ModelFinder {
  private readonly catalogue: ModelCatalogue & ModelStates;

  constructor(catalogue: ModelCatalogue & ModelStates) {
    this.catalogue = catalogue;
  }

  /** The model that a request names; undefined: none, or one that the model server does not know. */
  async known(
    match: GpuRoute,
    path: string,
    request: IncomingMessage,
    body: IntakeBody,
  ): Promise<string | undefined> {
    if (match.modelSource === 'none') return NO_MODEL;
    const model = await this.named(match, path, request, body);
    if (model === undefined) return undefined;
    return (await this.catalogue.lookUp(model)) === 'unknown' ? undefined : model;
  }

  /** Whether a request that only looks at its model can be answered at once, without a load. */
  async isReady(match: GpuRoute, path: string): Promise<boolean> {
    if (match.passesWhenReady !== true) return false;
    const model = await this.inPath(match, path);
    return model !== undefined && (await this.catalogue.stateOf(model)) === 'ready';
  }

  private async named(
    match: GpuRoute,
    path: string,
    request: IncomingMessage,
    body: IntakeBody,
  ): Promise<string | undefined> {
    if (match.modelSource === 'query') return queryModel(request);
    if (match.modelSource === 'body') return body.model;
    return this.inPath(match, path);
  }

  private async inPath(match: GpuRoute, path: string): Promise<string | undefined> {
    if (match.modelSource === 'comfyui') return COMFY_MODEL;
    const candidates = upstreamCandidates(path);
    for (const candidate of candidates) {
      if ((await this.catalogue.lookUp(candidate)) === 'known') return candidate;
    }
    return candidates.at(-1);
  }
}
