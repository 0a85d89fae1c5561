/** A threshold that is only tried: what it would decide is not what the policy decides. */

import type { Policy, Run } from "./api";
import type { Query } from "./route";

export interface Trial {
  value: number;
  /** The policy's own; null where there is none, or structures have different ones. */
  own: number | null;
}

/** The policy of a structure, or of all. */
export function policyOf(run: Pick<Run, "policies">, structure: string): Policy | null {
  return run.policies[structure] ?? run.policies[""] ?? null;
}

/** What is tried by a list of cases, or of one structure; null where the policy decides, also by the same number. */
export function trialOf(
  query: Query,
  run: Pick<Run, "policies" | "structures">,
  structure = query.structure,
): Trial | null {
  const value = Number(query.threshold);
  if (!query.threshold || !Number.isFinite(value)) return null;
  const names = structure ? [structure] : run.structures;
  const owns = [...new Set(names.map((name) => policyOf(run, name)?.threshold ?? null))];
  const own = owns.length === 1 ? owns[0]! : null;
  return own === value ? null : { value, own };
}

/** The list by the policy again; without one nothing is decided, so that nothing is chosen by a decision. */
export function withoutTrial(query: Query, run: Pick<Run, "policies">): Query {
  const { threshold: _, ...rest } = query;
  if (Object.keys(run.policies).length > 0) return rest;
  const { decision: __, ...all } = rest;
  return all;
}
