/** Columns of the worklist: those that say something about this run. */

import type { Run } from "../api";

export interface Column {
  name: "case" | "structure" | "set" | "group" | "confidence" | "margin" | "decision" | "dice" | "verdict";
  title: string;
  /** What the server sorts by; none for a column that cannot be sorted. */
  sort?: string;
  isNumber?: boolean;
}

export function columnsOf(run: Run): Column[] {
  const columns: (Column | false)[] = [
    { name: "case", title: "Case", sort: "case" },
    run.structures.length > 1 && { name: "structure", title: "Structure" },
    run.sets.length > 1 && { name: "set", title: "Set", sort: "set" },
    run.groups.length > 1 && { name: "group", title: "Group", sort: "group" },
    { name: "confidence", title: "Confidence", sort: "confidence", isNumber: true },
    { name: "margin", title: "Margin", isNumber: true },
    { name: "decision", title: "Decision", sort: "worklist" },
    run.has_truth && { name: "dice", title: "Dice", sort: "dice", isNumber: true },
    { name: "verdict", title: "Verdict", sort: "verdict" },
  ];
  return columns.filter((column) => column !== false);
}

/** The order after a click on a column: the other way round if it is the one already. */
export function sortedBy(column: Column, query: Record<string, string>): { sort: string; descending: string } {
  const current = query.sort ?? "worklist";
  const turns = column.sort === current && query.descending !== "true";
  return { sort: column.sort === "worklist" ? "" : (column.sort ?? ""), descending: turns ? "true" : "" };
}

export function ariaSort(
  column: Column,
  query: Record<string, string>,
): "ascending" | "descending" | "none" | undefined {
  if (!column.sort) return undefined;
  if ((query.sort ?? "worklist") !== column.sort) return "none";
  return query.descending === "true" ? "descending" : "ascending";
}
