import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const MORE_FOLDERS = ['/usr/local/bin', '/usr/bin', '/snap/bin'];

const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-quic'],
  ...['--no-first-run', '--disable-background-networking', '--disable-component-update'],
  '--disable-sync',
];

/** The system's Chromium. Throws with the command that installs one where there is none. */
function chromiumPath(): string {
  const folders = [...(process.env.PATH ?? '').split(path.delimiter), ...MORE_FOLDERS];
  const file = NAMES.flatMap((name) => folders.map((folder) => path.join(folder, name))).find(
    isExecutable,
  );
  if (file === undefined) throw new Error('no Chromium here: sudo apt-get install -y chromium');
  return file;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return path.isAbsolute(file);
  } catch {
    return false;
  }
}

/** Starts the system's Chromium without a window; the caller closes it. */
export async function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), headless: true, args: FLAGS });
}

/** What a page did that a clean one does not. */
export interface Complaints {
  /** Errors on the console, thrown errors, violations of the Content-Security-Policy, failed requests. */
  readonly errors: string[];
  /** Addresses of all requests it made. */
  readonly requests: string[];
}

/** Listens to a page from before it loads anything. */
export function listenTo(page: Page): Complaints {
  const complaints: Complaints = { errors: [], requests: [] };
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.errors.push(message.text());
  });
  page.on('pageerror', (error) => complaints.errors.push(String(error)));
  page.on('request', (request) => complaints.requests.push(request.url()));
  page.on('requestfailed', (request) => {
    // A page that is left breaks off its polls itself.
    const why = request.failure()?.errorText ?? '';
    if (why !== 'net::ERR_ABORTED') complaints.errors.push(`${request.url()}: ${why}`);
  });
  return complaints;
}
