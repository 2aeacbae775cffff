import { startScorerProcess } from '../src/processes/scorer-process.ts';
import { runProcess } from '../src/processes/run-process.ts';

await runProcess('scorer', startScorerProcess);
