/** What is said of alarms. */

import type { Alarm } from "./api";

const NAMED = 3;

/** Which cases the alarms are about, and what that means; nothing of no alarm. */
export function toldOf(alarms: Alarm[], hasStructures: boolean): string {
  if (alarms.length === 0) return "";
  const sets = [...new Set(alarms.flatMap((alarm) => alarm.sets))];
  const structures = hasStructures ? alarms.map(({ structure }) => structure).filter(Boolean) : [];
  const what = [
    sets.length > 0 ? `the ${sets.length === 1 ? "set" : "sets"} ${listed(sets)}` : "the new cases",
    structures.length > 0 ? `(${listed(structures)})` : "",
  ];
  return `for ${what.filter(Boolean).join(" ")}: cases that are not like those of the calibration. The policy’s promise is void for them, also where they are accepted.`;
}

function listed(names: string[]): string {
  const more = names.length - NAMED;
  if (more > 0) return `${names.slice(0, NAMED).join(", ")} and ${more} more`;
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join();
}
