/**
 * Points for wanting the model that is in GPU memory.
 *
 * @param residentModel null when it is not known: then nobody gets any.
 */
export function affinityBonus(model: string, residentModel: string | null, bonus: number): number {
  return model === residentModel ? bonus : 0;
}
