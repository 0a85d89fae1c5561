/** Arithmetic of a list of which only the visible rows are drawn and only their pages are asked for. */

export interface Window {
  /** First row to draw. */
  first: number;
  /** One beyond the last row to draw. */
  end: number;
}

/** Rows that are visible, and some beyond on both sides, so that scrolling shows no gap. */
export function visibleRows(scrollTop: number, height: number, rowHeight: number, total: number, beyond = 8): Window {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - beyond);
  const end = Math.min(total, Math.ceil((scrollTop + height) / rowHeight) + beyond);
  return { first: Math.min(first, end), end };
}

/** Numbers of the pages that hold these rows. */
export function pagesOf({ first, end }: Window, pageSize: number): number[] {
  if (end <= first) return [];
  const from = Math.floor(first / pageSize);
  return Array.from({ length: Math.floor((end - 1) / pageSize) - from + 1 }, (_, i) => from + i);
}

/** Where to scroll so that a row is seen as a whole; as little as possible. */
export function scrollToShow(row: number, scrollTop: number, height: number, rowHeight: number): number {
  const top = row * rowHeight;
  if (top < scrollTop) return top;
  return Math.max(scrollTop, top + rowHeight - height);
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), Math.max(low, high));
}

export interface Neighbours<T> {
  previous: { row: T; at: number } | null;
  next: { row: T; at: number } | null;
}

/**
 * The cases before and after an open one, from rows of the list around its place.
 *
 * A case may leave the list once it is decided (filter "undecided"): its place is then that of the next one.
 */
export function neighbours<T extends { number: number }>(
  rows: T[],
  offset: number,
  at: number,
  number: number,
): Neighbours<T> {
  const found = rows.findIndex((row) => row.number === number);
  const place = (index: number) => (rows[index] ? { row: rows[index], at: offset + index } : null);
  if (found >= 0) return { previous: place(found - 1), next: place(found + 1) };
  return { previous: place(at - offset - 1), next: place(at - offset) };
}
