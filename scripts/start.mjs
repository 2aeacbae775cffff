/** `npm start`: set-up, then the supervisor, which is this same process. */
import { setUpOrExit } from './setup.mjs';

await setUpOrExit({ needsRedis: (process.env.REDIS_URL ?? '').trim() === '' });
await import(new URL('../dist/src/supervise/main.js', import.meta.url).href);
