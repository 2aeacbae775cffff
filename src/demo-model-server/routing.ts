import { comfyModelId, needsGpu } from './catalogue.ts';
import type { Catalogue, DemoModel, UpstreamTarget } from './catalogue.ts';
import { comfyControls, comfyEndpoint, comfyPath } from './comfy-endpoint.ts';
import { ComfyUi } from './comfy-ui.ts';
import { redirect, type ControlTable } from './control-route.ts';
import { controlTable, methodNotAllowed, sendCors, type ControlParts } from './control.ts';
import { sendError, sendPlain } from './errors.ts';
import type { Exchange } from './exchange.ts';
import type { Endpoint } from './generation.ts';
import { findModelField } from './model-field.ts';
import { topRoute, type TopRoute } from './model-routes.ts';
import type { Residency } from './residency.ts';
import { upstreamEndpoint } from './upstream.ts';

/** What a request comes to: an answer that needs no model, or work on one. */
export type Route =
  | { readonly needsModel: false; readonly run: () => Promise<void> }
  | {
      readonly needsModel: true;
      readonly model: DemoModel;
      /** The model as the request named it. */
      readonly asked: string;
      /** Path at the model's own server. */
      readonly path: string;
      /** False for a model that needs none, and for a mere look (GET, HEAD) at one that is ready. */
      readonly takesGpu: boolean;
      /** It gets a row in the activity. */
      readonly isMetered: boolean;
      readonly endpoint: Endpoint;
    };

/** Never loads a model; the default `ignorePaths` of llama-swap. */
const ignorable = /\.(?:js|json|css|png|gif|jpg|jpeg|ico|txt)$/;

/** Decides what each request comes to. */
export class Router {
  readonly #catalogue: Catalogue;
  readonly #residency: Residency;
  readonly #parts: ControlParts;
  readonly #control: ControlTable;
  readonly #comfies = new Map<string, ComfyUi>();

  constructor(parts: ControlParts) {
    this.#catalogue = parts.catalogue;
    this.#residency = parts.residency;
    this.#parts = parts;
    this.#control = controlTable(parts);
  }

  /** The ComfyUI of an image model. */
  comfyOf(modelId: string): ComfyUi {
    const comfy = this.#comfies.get(modelId) ?? new ComfyUi();
    this.#comfies.set(modelId, comfy);
    return comfy;
  }

  /** Models were loaded or stopped: a ComfyUI whose process ended has lost everything. */
  modelsChanged(): void {
    for (const [id, comfy] of this.#comfies)
      if (this.#residency.stateOf(id) === 'stopped') comfy.die();
  }

  /**
   * 1. OPTIONS is answered alike everywhere. 2. Inference paths find their model in the request. 3. `/upstream/`
   * finds it in the path, `/comfyui/` has one of its own. 4. Control paths. 5. Anything else is unknown.
   */
  route(exchange: Exchange): Route {
    const { method, path } = exchange;
    if (method === 'OPTIONS') return answerWith(() => sendCors(exchange)); // 1
    const top = topRoute(method, path);
    if (top !== undefined) return this.#inference(exchange, top); // 2
    if (path.startsWith('/upstream/')) return this.#upstream(exchange); // 3
    if (path === '/comfyui' || path.startsWith('/comfyui/')) return this.#comfyui(exchange); // 3
    const control = this.#control.find(path); // 4
    if (control !== undefined) {
      const { route, rest } = control;
      return route.methods.includes(method)
        ? answerWith(() => route.run(exchange, rest))
        : answerWith(() => methodNotAllowed(exchange, route.methods));
    }
    return answerWith(() => sendPlain(exchange.answer, 404, '404 page not found')); // 5
  }

  #inference(exchange: Exchange, { methods, served }: TopRoute): Route {
    const { answer, headers, method } = exchange;
    if (served === undefined) return answerWith(() => methodNotAllowed(exchange, methods));
    const named = findModelField({ ...exchange, contentType: headers['content-type'] ?? '' });
    const asked = this.#parts.profiles.pinned(named);
    if (asked === '') {
      return answerWith(() => sendError(answer, headers, 404, 'no model id could be identified'));
    }
    const model = this.#catalogue.find(asked);
    if (model === undefined) {
      return answerWith(() => sendError(answer, headers, 404, 'no router for requested model'));
    }
    const isMetered = method === 'POST';
    return { needsModel: true, model, asked, takesGpu: needsGpu(model), isMetered, ...served };
  }

  #upstream(exchange: Exchange): Route {
    const { answer, headers } = exchange;
    const path = this.#parts.profiles.pinnedPath(exchange.path.slice('/upstream'.length));
    const target = path === undefined ? undefined : this.#catalogue.findInPath(path);
    if (target === undefined) {
      return answerWith(() => sendError(answer, headers, 404, 'model not found'));
    }
    if (target.rest === '') return answerWith(() => redirectToSlash(exchange, target));
    const isApart = !needsGpu(target.model);
    const isReady = isApart || this.#residency.stateOf(target.model.id) === 'ready';
    if (ignorable.test(target.rest) && !isReady) return notLoaded(exchange, target.model);
    return this.#atModel(exchange, target);
  }

  /** Only the root may start it; the redirect to it is for everybody. */
  #comfyui(exchange: Exchange): Route {
    const { answer, headers, path } = exchange;
    if (path === '/comfyui') return answerWith(() => redirectTo(exchange, '/comfyui/'));
    const model = this.#catalogue.find(comfyModelId);
    if (model === undefined)
      return answerWith(() => sendError(answer, headers, 404, 'model not found'));
    if (path !== '/comfyui/' && this.#residency.stateOf(model.id) !== 'ready')
      return notLoaded(exchange, model);
    return this.#atModel(exchange, { model, asked: model.id, rest: path.slice('/comfyui'.length) });
  }

  /** A mere look at a model that is ready takes no GPU, nor does telling a ComfyUI to stop. */
  #atModel({ method }: Exchange, { model, asked, rest }: UpstreamTarget): Route {
    const isApart = !needsGpu(model);
    const isReady = isApart || this.#residency.stateOf(model.id) === 'ready';
    const isLook = method === 'GET' || method === 'HEAD';
    const isControl = model.kind === 'image' && comfyControls.has(comfyPath(rest));
    const comfy =
      model.kind === 'image' ? comfyEndpoint(method, rest, this.comfyOf(model.id)) : undefined;
    const takesGpu = !isApart && !((isLook || isControl) && isReady);
    const endpoint = comfy ?? upstreamEndpoint;
    return { needsModel: true, model, asked, path: rest, takesGpu, isMetered: false, endpoint };
  }
}

function answerWith(run: () => Promise<void>): Route {
  return { needsModel: false, run };
}

function notLoaded({ answer, headers }: Exchange, model: DemoModel): Route {
  const message = `model ${model.id} is not loaded and this path may not load it`;
  return answerWith(() => sendError(answer, headers, 409, message));
}

function redirectToSlash(exchange: Exchange, target: UpstreamTarget): Promise<void> {
  return redirectTo(exchange, `/upstream/${target.asked}/`);
}

function redirectTo(exchange: Exchange, location: string): Promise<void> {
  const isGet = exchange.method === 'GET' || exchange.method === 'HEAD';
  const query = exchange.rawQuery === '' ? '' : `?${exchange.rawQuery}`;
  return redirect(exchange, isGet ? 301 : 308, location + query);
}
