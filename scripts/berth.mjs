/** `npm run berth -- …`: set-up, then the operator's command line, which is this same process. */
import { setUpOrExit } from './setup.mjs';

await setUpOrExit({ needsRedis: false });
await import(new URL('../dist/src/cli/main.js', import.meta.url).href);
