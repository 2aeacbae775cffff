/** What a history can prove against a gateway; `nothing-proved`: it is too empty to prove anything for it. */
export type CrashFaultKind =
  | 'nothing-proved'
  | 'lost'
  | 'refused-for-good'
  | 'without-end'
  | 'two-ends'
  | 'two-jobs-for-a-key'
  | 'two-keys-for-a-job'
  | 'not-asked-for'
  | 'other-request'
  | 'two-at-once'
  | 'other-bytes'
  | 'no-result'
  | 'without-excuse'
  | 'after-its-end'
  | 'ended-by-itself';

/** A broken promise, in words. */
export interface CrashFault {
  readonly kind: CrashFaultKind;
  readonly text: string;
}
