import { readFileSync, writeFileSync } from 'node:fs';
import { describeConfig } from './describe.ts';
import { generatedFiles, referencePage } from './generated-files.ts';
import { loadConfigOrExit } from './load.ts';

/**
 * `npm run config` prints the effective configuration as JSON, secrets hidden, or its faults.
 * `npm run config -- --write` writes the files that repeat the schemas, from the repository's root.
 */
if (process.argv.includes('--write')) {
  for (const [path, text] of generatedFiles(readFileSync(referencePage, 'utf8'))) {
    writeFileSync(path, text);
    console.log(path);
  }
} else {
  console.log(JSON.stringify(describeConfig(loadConfigOrExit()), null, 2));
}
