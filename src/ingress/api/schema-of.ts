import type * as z from 'zod';

/** A type without its `readonly`s, which a schema says nothing of, and with what may be absent put as a value. */
type Plain<Type> = Type extends object
  ? {
      -readonly [Key in keyof Type]-?: [
        Plain<Type[Key]>,
        Partial<Pick<Type, Key>> extends Pick<Type, Key> ? 'may be absent' : 'is there',
      ];
    }
  : Type;

type Same<One, Other> = [One] extends [Other] ? ([Other] extends [One] ? true : false) : false;

type Fitting<Schema extends z.ZodType, Type> =
  Same<Plain<z.output<Schema>>, Plain<Type>> extends true ? unknown : { schemaIsOf: Type };

/**
 * Takes a schema of exactly this type: `schemaOf<JobObject>()(schema)` compiles only while type and schema say the same
 * of each other, so that what is documented is what is answered.
 */
export const schemaOf =
  <Type>() =>
  <Schema extends z.ZodType>(schema: Schema & Fitting<Schema, Type>): Schema =>
    schema;
