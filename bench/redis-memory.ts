import { redisCommand } from '../src/supervise/redis-command.ts';

/** Bytes that Redis uses for data: without the buffers of connections and of the append-only file. */
export async function dataBytes(socket: string): Promise<number> {
  const info = await redisCommand(socket, ['INFO', 'memory'], 5000);
  const field = (name: string): number => {
    const value = new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1];
    if (value === undefined) throw new Error(`Redis tells no ${name}`);
    return Number(value);
  };
  return field('used_memory') - field('mem_clients_normal') - field('mem_aof_buffer');
}
