import {
  destination as openDestination,
  pino,
  stdTimeFunctions,
  type DestinationStream,
  type Logger as Pino,
} from 'pino';
import type { LogFields, Logger } from '../../ports/logger.ts';
import { redact } from './redaction.ts';

/** How a process logs. */
export interface LoggerOptions {
  /** Stands in every line. */
  readonly process: string;
  /** Least severe level that is written. */
  readonly level: 'silent' | 'error' | 'warn' | 'info' | 'debug';
  /** Default: standard output, written at once, so that a crash loses no line. */
  readonly destination?: DestinationStream;
}

/** A logger that writes one JSON object a line, with ISO 8601 UTC time and nothing that looks like a credential. */
export function createLogger({ process: name, level, destination }: LoggerOptions): Logger {
  const options = {
    level,
    base: { process: name, pid: process.pid },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    // `redact` has already made plain fields of an error.
    serializers: { err: (err: unknown) => err },
  };
  return new PinoLogger(pino(options, destination ?? openDestination({ dest: 1, sync: true })));
}

class PinoLogger implements Logger {
  private readonly pino: Pino;

  constructor(logger: Pino) {
    this.pino = logger;
  }

  error(fields: LogFields, message: string): void {
    this.write('error', fields, message);
  }

  warn(fields: LogFields, message: string): void {
    this.write('warn', fields, message);
  }

  info(fields: LogFields, message: string): void {
    this.write('info', fields, message);
  }

  debug(fields: LogFields, message: string): void {
    this.write('debug', fields, message);
  }

  child(fields: LogFields): Logger {
    return new PinoLogger(this.pino.child(redact(fields)));
  }

  private write(level: 'error' | 'warn' | 'info' | 'debug', fields: LogFields, message: string) {
    if (this.pino.isLevelEnabled(level)) this.pino[level](redact(fields), message);
  }
}
