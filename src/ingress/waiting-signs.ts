import type { StreamProtocol } from '../gateway/stream-protocol.ts';
import type { PulseTimes } from './pulse.ts';
import type { QueuePlace } from './published-plan.ts';
import { reasoningFrame, signOfLife } from './stream-frames.ts';

/** How streaming clients are told that they wait. */
export interface WaitingStyle extends PulseTimes {
  style: 'off' | 'comments' | 'reasoning';
}

/** Whom the signs are about. */
export interface WaitingJobSigns {
  jobId: string;
  model: string;
  protocol: StreamProtocol;
  style: WaitingStyle;
  hasStarted: () => boolean;
  place: () => Promise<QueuePlace | undefined>;
}

/** Signs of life of one job to the client that waits for its stream. */
export class WaitingSigns {
  readonly times: PulseTimes;
  readonly protocol: StreamProtocol;
  private readonly job: WaitingJobSigns;
  private lastSaid = '';

  constructor(job: WaitingJobSigns) {
    this.job = job;
    this.times = job.style;
    this.protocol = job.protocol;
  }

  /** Whether no signs are to be given. */
  get isSilent(): boolean {
    return this.job.style.style === 'off';
  }

  /**
   * The next sign: position and ETA in seconds as a comment, or, when it is a chat's and they changed, as llama-swap's
   * reasoning. `hasContent`: part of the answer was sent, which nobody's reasoning may interrupt.
   */
  async next(hasContent: boolean): Promise<string> {
    const { jobId, model, protocol, style } = this.job;
    const place = await this.job.place();
    const hasStarted =
      this.job.hasStarted() || (place !== undefined && place.position === undefined);
    const eta = etaOf(place, hasStarted);
    if (style.style === 'reasoning' && protocol === 'chat' && !hasContent && !hasStarted) {
      const said = place === undefined ? '' : `Queue position: #${place.position}`;
      if (said !== '' && said !== this.lastSaid) {
        this.lastSaid = said;
        return reasoningFrame(jobId, model, `${said}${eta === '' ? '' : `, ETA ${eta} s`}\n`);
      }
    }
    const words = hasStarted
      ? ['berth running']
      : place === undefined
        ? ['berth waiting']
        : ['berth position', String(place.position)];
    return signOfLife(protocol, [...words, ...(eta === '' ? [] : ['eta', eta])].join(' '));
  }
}

/** `120-300`, whole seconds; empty when nothing is known. A plan of before the start says nothing of the run. */
function etaOf(place: QueuePlace | undefined, hasStarted: boolean): string {
  if (place === undefined || (hasStarted && place.position !== undefined)) return '';
  return `${Math.round(place.eta.p50)}-${Math.round(place.eta.p90)}`;
}
