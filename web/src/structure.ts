/** The structure that threshold and monitoring are about: the same in both, and when one comes back to them. */

import type { Run } from "./api";
import { lastStructure } from "./desk";
import { useStore } from "./store";

export function useStructure(run: Run): [string, (structure: string) => void] {
  const last = useStore(lastStructure);
  const known = last !== null && run.structures.includes(last);
  return [known ? last : (run.structures[0] ?? ""), (structure) => lastStructure.set(structure)];
}
