import { startIngressProcess } from './processes/ingress-process.ts';
import { runProcess } from './processes/run-process.ts';

await runProcess('ingress', startIngressProcess);
