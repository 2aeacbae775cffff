import { startGpuProcess } from '../src/processes/gpu-process.ts';
import { runProcess } from '../src/processes/run-process.ts';

await runProcess('gpu', startGpuProcess);
