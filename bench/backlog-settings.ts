/** How many jobs wait while the order is measured, least first: a queue is filled up from one to the next. */
export const WAITING = [100, 10_000, 100_000] as const;
/** Whose jobs they are. */
export const MEMBERS = [10, 1000] as const;
/** How many models they want. */
export const MODEL_COUNT = 4;

/** One column of the report on the order. */
export interface Setting {
  readonly waiting: number;
  readonly members: number;
}

/** Names a setting in what is measured. */
export const settingName = ({ waiting, members }: Setting): string => `${waiting}/${members}`;
