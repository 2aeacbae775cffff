import { modelJson, type Endpoint } from './generation.ts';

/** `GET /props`, llama-server's: what the model was started with. */
export const props: Endpoint = async ({ answer, asked, model }) => {
  const said = {
    default_generation_settings: { n_ctx: model.contextLength ?? 0, params: { n_predict: -1 } },
    total_slots: 1,
    model_alias: asked,
    model_path: `/models/${model.id}.gguf`,
    modalities: { vision: false, audio: model.kind === 'audio' },
    chat_template: '{{ messages }}',
    build_info: 'demo',
    is_sleeping: false,
  };
  await answer.send(200, modelJson, JSON.stringify(said));
};
