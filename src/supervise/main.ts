import { loadConfigOrExit } from '../config/load.ts';
import { serve } from './serve.ts';

process.setSourceMapsEnabled(true);
process.exit(await serve(loadConfigOrExit()));
