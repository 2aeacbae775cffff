/** A started process: how it stops. */
export interface RunningProcess {
  stop(): Promise<void>;
}
