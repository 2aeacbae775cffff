import { onStopSignals } from '../adapters/process/stop-signals.ts';
import type { BerthConfig } from '../config/load.ts';
import { holdDataDir } from './data-dir.ts';
import { clearRedisPlace, prepareRedisPlace, type RedisPlace } from './embedded-redis.ts';
import { checkNoOtherRedis, endLeftovers } from './leftovers.ts';
import { checkPortIsFree } from './port-check.ts';
import { planProcesses, type ProcessPlan } from './process-specs.ts';
import { RunRecordFile } from './run-record.ts';
import { StartRefused } from '../adapters/process/start-refused.ts';
import { Supervisor } from './supervisor.ts';

/** What an orphaned process takes to end beyond its grace, in milliseconds. */
const ORPHAN_EXTRA_MS = 1000;

/** Turns a configuration into the processes to run. */
export type Planner = (
  config: BerthConfig,
  dataDir: string,
  redisPlace: RedisPlace | null,
) => ProcessPlan;

/**
 * `npm start` after its set-up: runs all of Berth until a signal ends it or a process is given up, and
 * leaves nothing behind. What it says to the operator are single lines; errors go to stderr.
 *
 * @param plan which processes; tests put their own in.
 * @returns the exit code.
 */
export async function serve(config: BerthConfig, plan: Planner = planProcesses): Promise<number> {
  // Whoever reads our output may go away; that is no reason to stop.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  let supervisor: Supervisor | undefined;
  onStopSignals({
    stop: () => (supervisor === undefined ? process.exit(0) : supervisor.stop()),
    force: () => (supervisor === undefined ? process.exit(1) : supervisor.force()),
  });
  process.on('exit', () => supervisor?.killNow());

  const graceMs = config.shutdown.graceSeconds * 1000;
  try {
    const held = await holdDataDir(config.dataDir, `the berth supervisor with pid ${process.pid}`);
    const record = new RunRecordFile(held.dir);
    const drainMs = graceMs + ORPHAN_EXTRA_MS;
    await endLeftovers({ dataDir: held.dir, record: record.left(), drainMs, say: complain });
    record.remove();
    await checkPortIsFree(config.http.host, config.http.port);
    const redisPlace = config.redis.url === null ? await takeRedisPlace(held.dir, record) : null;
    const processes = plan(config, held.dir, redisPlace);
    if (config.modelServer.url === null) {
      say('berth: MODEL_SERVER_URL is not set, so the demo model server answers');
    }
    supervisor = new Supervisor({
      ...processes,
      graceMs,
      onSpawned: (name, pid) => record.noteProcess(name, pid),
      onListening: processes.noteListening,
      onReady: () => say(`berth ready on ${processes.address()}`),
      complain,
    });
    const exitCode = await supervisor.run();
    if (redisPlace !== null) clearRedisPlace(redisPlace);
    record.remove();
    await held.release();
    return exitCode;
  } catch (error) {
    if (!(error instanceof StartRefused)) throw error;
    complain(error.message);
    return 1;
  }
}

async function takeRedisPlace(dataDir: string, record: RunRecordFile): Promise<RedisPlace> {
  await checkNoOtherRedis(dataDir);
  const place = prepareRedisPlace(dataDir);
  if (place.socketFolder !== null) record.noteSocketFolder(place.socketFolder);
  return place;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function complain(line: string): void {
  process.stderr.write(`berth: ${line}\n`);
}
