import { BACKLOG_ROWS } from './backlog-goals.ts';
import type { BacklogColumn } from './backlog-goals.ts';
import { measureBacklogs } from './backlog-pass.ts';
import type { BacklogSize } from './backlog-pass.ts';
import { MEMBERS, settingName, WAITING } from './backlog-settings.ts';
import { endProgram, firstMessage, startProgram } from './berth-processes.ts';
import type { BenchModelServer } from './model-server.ts';
import type { Figures } from './pass.ts';
import { table } from './report.ts';

/** Measures pick and books at all backlogs, `repeats` times; a table for each number of members. */
export async function measureOrder(
  server: BenchModelServer,
  repeats: number,
  size: BacklogSize,
  onPass: (what: string) => void,
): Promise<string> {
  const policy = await policyFigures();
  onPass('the policy alone');
  const passes = new Map<number, Record<string, Figures>[]>(
    MEMBERS.map((members) => [members, []]),
  );
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    for (const [members, each] of passes) {
      each.push(await measureBacklogs(server, members, repeat % 2 === 1, size));
      onPass(`pass ${repeat + 1} of ${repeats}, backlogs of ${members} members`);
    }
  }
  const tables = [...passes].map(([members, each]) => {
    const columns = WAITING.map((waiting) => {
      const setting = settingName({ waiting, members });
      const name = waiting.toLocaleString('en') as BacklogColumn;
      const least = settingName({ waiting: WAITING[0], members });
      const figures = each.flatMap((pass) => {
        const measured = pass[setting];
        return measured === undefined ? [] : [withGrowth(measured, pass[least] ?? {})];
      });
      return { name, passes: figures.map((one) => ({ ...policy[setting], ...one })) };
    }).filter((column) => column.passes.length > 0);
    return `Jobs of ${members.toLocaleString('en')} members, by how many wait:\n\n${table(BACKLOG_ROWS, columns)}`;
  });
  return tables.join('\n\n');
}

function withGrowth(figures: Figures, atLeast: Figures): Figures {
  const growth = (lane: string): number =>
    (figures[`gap.${lane}.p50`] ?? NaN) / (atLeast[`gap.${lane}.p50`] ?? NaN);
  return { ...figures, 'gap.growth.berth': growth('berth'), 'gap.growth.bare': growth('bare') };
}

async function policyFigures(): Promise<Record<string, Figures>> {
  const child = startProgram(['--import', 'tsx', 'bench/policy-process.ts'], {}, '/dev/null');
  const { figures } = await firstMessage<{ figures: Record<string, Figures> }>(child, 'figures');
  await endProgram(child);
  return figures;
}
