/** Rows of the worklist, kept page by page as the server gives them. */

import type { Cases, Row } from "./api";
import { type Window, pagesOf } from "./virtual";

export const PAGE_SIZE = 200;

export class Pages {
  total: number | null = null;
  /** Where the row is that was to be found; null where it is not there, or was followed already. */
  place: number | null = null;
  error: Error | null = null;
  private readonly pages = new Map<number, Row[] | "coming">();
  private readonly stopping = new AbortController();

  constructor(
    private readonly load: (offset: number, limit: number, signal: AbortSignal) => Promise<Cases>,
    private readonly onChange: () => void,
    /** What the list was asked for with, and the number of the row that is to be found in it. */
    readonly query = "",
    readonly sought: number | null = null,
  ) {}

  row(index: number): Row | null {
    const page = this.pages.get(Math.floor(index / PAGE_SIZE));
    return Array.isArray(page) ? (page[index % PAGE_SIZE] ?? null) : null;
  }

  /** Ask for what is missing of these rows. */
  want(window: Window): void {
    for (const page of pagesOf(window, PAGE_SIZE)) if (!this.pages.has(page)) void this.fetch(page);
  }

  stop(): void {
    this.stopping.abort();
  }

  private async fetch(page: number): Promise<void> {
    this.pages.set(page, "coming");
    try {
      const { total, rows, place } = await this.load(page * PAGE_SIZE, PAGE_SIZE, this.stopping.signal);
      this.pages.set(page, rows);
      if (this.total === null) this.place = place;
      this.total = total;
      this.error = null;
    } catch (error) {
      this.pages.delete(page);
      this.error = error as Error;
    }
    if (!this.stopping.signal.aborted) this.onChange();
  }
}
