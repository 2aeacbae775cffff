import { writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { composeConfig, type BerthConfig } from './berth-config.ts';
import { ConfigurationError, type ConfigurationFault } from './configuration-error.ts';
import { readDocument } from './read-document.ts';
import { readEnvironment, textOf } from './read-environment.ts';
import { isLoopbackHost } from './server-address.ts';

export type { BerthConfig } from './berth-config.ts';

/** Exit code of a standalone process whose configuration is refused. */
const refusedExitCode = 1;
/** The same of a supervised one: the supervisor does not start it again and ends with 1 itself. */
const refusedChildExitCode = 2;

/**
 * Reads the environment and the file BERTH_CONFIG names; the only place that does. The result is
 * deep-frozen.
 *
 * @throws {ConfigurationError} with all faults of both together.
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env): BerthConfig {
  const { environment, faults: environmentFaults } = readEnvironment(env);
  const { document, faults: documentFaults } = readDocument(configPath(env));
  const faults: ConfigurationFault[] = [...environmentFaults, ...documentFaults];
  if (environment === null || document === null) throw new ConfigurationError(faults);
  if (
    document.keys.length === 0 &&
    !environment.BERTH_ALLOW_OPEN &&
    !isLoopbackHost(environment.HOST)
  ) {
    throw new ConfigurationError([
      {
        path: 'HOST',
        what:
          `${environment.HOST} is reached from other machines and no keys are configured: ` +
          'add keys, listen on 127.0.0.1, or set BERTH_ALLOW_OPEN=1',
      },
    ]);
  }
  return composeConfig(environment, document);
}

/** The absolute path of the file that BERTH_CONFIG names; null when it names none. */
export function configPath(env: NodeJS.ProcessEnv = process.env): string | null {
  const path = textOf(env, 'BERTH_CONFIG');
  return path === undefined ? null : resolve(path);
}

/**
 * As `loadConfig`, for entry points: prints each fault as one line on stderr and ends the process, with 2
 * where a supervisor listens on the IPC channel and with 1 otherwise.
 */
export function loadConfigOrExit(env: NodeJS.ProcessEnv = process.env): BerthConfig {
  try {
    return loadConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    writeSync(2, error.lines.map((line) => `berth: configuration: ${line}\n`).join(''));
    process.exit(process.send === undefined ? refusedExitCode : refusedChildExitCode);
  }
}
