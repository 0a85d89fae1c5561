/** The selected case stays selected while its list changes: a run may grow, and others decide. */

import type { Row } from "./api";
import { keyOf } from "./log";
import type { Pages } from "./pages";
import { clamp } from "./virtual";

export class Selection {
  private query = "";
  index = -1;
  /** Null until the row has come. */
  row: Row | null = null;

  private askedFor: Pages | null = null;

  /** Take in where the reviewer is, and the list as it is now. A row that has left the list stays selected. */
  update(pages: Pages, at: number): void {
    const isFirst = this.index < 0;
    if (at !== this.index || pages.query !== this.query) this.row = null;
    [this.index, this.query] = [at, pages.query];
    const wanted = isFirst ? pages.sought : (this.row?.number ?? null);
    if (pages.place !== null && wanted === pages.sought) this.index = pages.place;
    if (!this.row) this.index = clamp(this.index, 0, (pages.total ?? 1) - 1);
    const there = pages.row(this.index);
    if (there && (!this.row || isSame(this.row, there))) this.row = there;
  }

  /** Go to a place at once: the next key may come before anything is drawn. */
  choose(pages: Pages, index: number): void {
    this.index = index;
    this.row = pages.row(index);
  }

  /**
   * Whether the list must be asked for again, once, because the row may be elsewhere in it: it was selected while the
   * list was on its way.
   */
  mustAskAgain(pages: Pages): boolean {
    if (!this.isGone(pages) || this.row?.number === pages.sought || this.askedFor === pages) return false;
    this.askedFor = pages;
    return true;
  }

  /** Whether the selected row is no longer at its place. */
  isGone(pages: Pages): boolean {
    if (this.row === null || pages.total === null) return false;
    const there = pages.row(this.index);
    return this.index >= pages.total || (there !== null && !isSame(this.row, there));
  }
}

/** Numbers alone do not tell: they are others once the desk was started anew. */
function isSame(a: Row, b: Row): boolean {
  return a.number === b.number && keyOf(a) === keyOf(b);
}
