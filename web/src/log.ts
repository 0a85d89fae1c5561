/** What holds, read from the append-only log of verdicts. */

import type { Entry, Row, Verdict } from "./api";

export const VERDICT_LABELS: Record<Verdict, string> = {
  accept: "accepted",
  reject: "rejected",
  correct: "to correct",
};

type Place = Pick<Row, "set" | "case" | "structure">;
type Mapped = Place & Pick<Row, "digest">;

/** Verdicts that hold now: of each case and reviewer the last one that is not taken back. */
export class Standing {
  private readonly byCase = new Map<string, Entry[]>();

  constructor(log: readonly Entry[]) {
    const undone = new Set(log.map((entry) => entry.undoes).filter((id) => id != null));
    for (const entry of log) {
      if (entry.verdict && entry.undoes == null && !undone.has(entry.id)) this.keep(entry);
    }
  }

  private keep(entry: Entry): void {
    const key = keyOf(entry);
    const others = (this.byCase.get(key) ?? []).filter((before) => before.reviewer !== entry.reviewer);
    this.byCase.set(key, [...others, entry]);
  }

  /** What was said of the map of a row: that of another model has not been looked at yet. */
  of(row: Mapped): Entry[] {
    const said = this.byCase.get(keyOf(row)) ?? [];
    return said.filter((entry) => !row.digest || !entry.digest || entry.digest === row.digest);
  }

  mine(row: Mapped, reviewer: string): Entry | null {
    return this.of(row).find((entry) => entry.reviewer === reviewer) ?? null;
  }
}

/** A case on a map: once it is scored anew it is to be looked at anew. */
export function identityOf(row: Mapped): string {
  return [keyOf(row), row.digest].join("\0");
}

/** What tells a case from all others, also after the server was started anew. */
export function keyOf(place: Place): string {
  return [place.set ?? "", place.case, place.structure].join("\0");
}

/** The log with new entries, each once, in their order. */
export function joined(log: readonly Entry[], fresh: readonly Entry[]): readonly Entry[] {
  const known = new Set(log.map((entry) => entry.id));
  const unknown = fresh.filter((entry) => !known.has(entry.id));
  return unknown.length === 0 ? log : [...log, ...unknown].sort((a, b) => a.id - b.id);
}

/** The last verdict of a reviewer that is not taken back. */
export function lastOf(log: readonly Entry[], reviewer: string): Entry | null {
  const undone = new Set(log.map((entry) => entry.undoes).filter((id) => id != null));
  return (
    log.findLast(
      (entry) => entry.reviewer === reviewer && entry.verdict && entry.undoes == null && !undone.has(entry.id),
    ) ?? null
  );
}

/** Of one answer of the server. */
const MOST_ENTRIES = 1000;
/** Entries that are asked for once more: a database may show a higher number a moment before a lower one. */
const OVERLAP = 20;

/**
 * Asks for entries that were not heard of yet.
 *
 * How far it has heard is not how far the log reaches: one's own verdict comes back at once, with a number higher
 * than that of another reviewer's, which is still to be heard.
 */
export class Follower {
  private heardUpTo = 0;

  constructor(
    private readonly ask: (after: number) => Promise<Entry[]>,
    private readonly onEntries: (fresh: Entry[]) => void,
  ) {}

  async catchUp(): Promise<void> {
    const fresh = await this.ask(Math.max(0, this.heardUpTo - OVERLAP));
    this.heardUpTo = Math.max(this.heardUpTo, ...fresh.map((entry) => entry.id));
    this.onEntries(fresh);
    if (fresh.length >= MOST_ENTRIES) await this.catchUp();
  }
}
