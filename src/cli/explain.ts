import type { Explanation } from '../gateway/explanation.ts';
import type { BerthClient } from './berth-client.ts';
import { explainText } from './explain-text.ts';
import type { Terminal } from './terminal.ts';

/** `berth explain`: why a job waits, or waited. */
export async function explain(
  client: BerthClient,
  terminal: Terminal,
  id: string,
  { json = false }: { json?: boolean },
): Promise<number> {
  const explanation = await client.json<Explanation>(`/berth/jobs/${id}/explain`);
  terminal.out.write(json ? `${JSON.stringify(explanation, null, 2)}\n` : explainText(explanation));
  return 0;
}
