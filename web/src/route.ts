/** Where the reviewer is: kept in the address, so that reloading and links come back to it. */

import type { ViewName } from "./keys";
import { asQuery } from "./api";

export type Query = Record<string, string>;

export interface Route {
  view: ViewName;
  /** Of the open case. */
  number: number | null;
  /** Its place in the list that `query` gives. */
  at: number;
  query: Query;
}

const FIELDS = ["sort", "descending", "set", "group", "structure", "decision", "verdict", "search", "threshold"];

export function readRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [name, number] = path.split("/");
  const parameters = new URLSearchParams(query);
  const kept = FIELDS.flatMap((field) => (parameters.get(field) ? [[field, parameters.get(field)!]] : []));
  const at = Math.max(0, Number.parseInt(parameters.get("at") ?? "0", 10) || 0);
  return { ...placeOf(name ?? "", number), at, query: Object.fromEntries(kept) };
}

function placeOf(name: string, number: string | undefined): { view: ViewName; number: number | null } {
  if (name === "case" && number !== undefined && /^\d+$/.test(number)) return { view: "case", number: Number(number) };
  return { view: name === "threshold" || name === "monitoring" ? name : "worklist", number: null };
}

export function writeRoute(route: Route): string {
  const path = route.view === "case" ? `case/${route.number}` : route.view;
  return `#/${path}${asQuery({ ...route.query, at: route.at || null })}`;
}
