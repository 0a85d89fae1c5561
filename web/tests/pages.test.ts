import { expect, it, vi } from "vitest";
import type { Row } from "../src/api";
import { PAGE_SIZE, Pages } from "../src/pages";

const rowsFrom = (offset: number) => Array.from({ length: PAGE_SIZE }, (_, i) => ({ number: offset + i }) as Row);

it("asks for each page once, and finds its rows", async () => {
  const load = vi.fn(async (offset: number) => ({ total: 1000, rows: rowsFrom(offset), place: null }));
  const changed = vi.fn();
  const pages = new Pages(load, changed);
  pages.want({ first: PAGE_SIZE - 1, end: PAGE_SIZE + 1 });
  pages.want({ first: PAGE_SIZE, end: PAGE_SIZE + 1 });
  expect(pages.row(PAGE_SIZE)).toBeNull();
  await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(2));
  expect(load).toHaveBeenCalledTimes(2);
  expect(pages.total).toBe(1000);
  expect(pages.row(PAGE_SIZE + 3)?.number).toBe(PAGE_SIZE + 3);
});

it("asks again for a page that failed", async () => {
  const load = vi
    .fn()
    .mockRejectedValueOnce(new Error("gone"))
    .mockResolvedValueOnce({ total: 1, rows: rowsFrom(0), place: null });
  const changed = vi.fn();
  const pages = new Pages(load, changed);
  pages.want({ first: 0, end: 1 });
  await vi.waitFor(() => expect(pages.error?.message).toBe("gone"));
  pages.want({ first: 0, end: 1 });
  await vi.waitFor(() => expect(pages.row(0)?.number).toBe(0));
  expect(pages.error).toBeNull();
});

it("says nothing more once it is stopped", async () => {
  const changed = vi.fn();
  const pages = new Pages(async () => ({ total: 1, rows: [], place: null }), changed);
  pages.want({ first: 0, end: 1 });
  pages.stop();
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(changed).not.toHaveBeenCalled();
});
