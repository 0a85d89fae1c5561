import { describe, expect, it, vi } from "vitest";
import type { Row } from "../src/api";
import { Pages } from "../src/pages";
import { Selection } from "../src/selection";

/** A list of rows of these numbers, in which one was to be found. */
async function listed(numbers: number[], sought: number | null = null, query = "all"): Promise<Pages> {
  const rows = numbers.map((number) => ({ number, set: "", case: String(number), structure: "" }) as Row);
  const found = numbers.indexOf(sought ?? -1);
  const answer = { total: numbers.length, rows, place: found < 0 ? null : found };
  const pages = new Pages(async () => answer, vi.fn(), query, sought);
  pages.want({ first: 0, end: 1 });
  await vi.waitFor(() => expect(pages.total).not.toBeNull());
  return pages;
}

async function selected(numbers: number[], at: number): Promise<Selection> {
  const selection = new Selection();
  selection.update(await listed(numbers), at);
  return selection;
}

describe("Selection", () => {
  it("is the row at the place of the reviewer", async () => {
    const selection = await selected([10, 11, 12], 1);
    expect([selection.index, selection.row?.number]).toEqual([1, 11]);
    selection.update(await listed([10, 11, 12]), 2);
    expect(selection.row?.number).toBe(12);
  });

  it("is where the reviewer goes before anything is drawn", async () => {
    const pages = await listed([10, 11, 12]);
    const selection = await selected([10, 11, 12], 0);
    selection.choose(pages, selection.index + 1);
    selection.choose(pages, selection.index + 1);
    expect([selection.index, selection.row?.number]).toEqual([2, 12]);
    selection.update(pages, 2);
    expect(selection.row?.number).toBe(12);
  });

  it("goes with its case when the list grows", async () => {
    const selection = await selected([10, 11, 12], 1);
    selection.update(await listed([7, 10, 8, 9, 11, 12], 11), 1);
    expect([selection.index, selection.row?.number]).toEqual([4, 11]);
  });

  it("stays with a case that has left the list", async () => {
    const selection = await selected([10, 11, 12], 1);
    const pages = await listed([10, 12], 11);
    selection.update(pages, 1);
    expect([selection.index, selection.row?.number, selection.isGone(pages)]).toEqual([1, 11, true]);
    expect(selection.mustAskAgain(pages)).toBe(false);
    selection.choose(pages, 1);
    expect(selection.row?.number).toBe(12);
  });

  it("stays with the last case of a list that it has left", async () => {
    const selection = await selected([10, 11, 12], 2);
    const pages = await listed([10, 11], 12);
    selection.update(pages, 2);
    expect([selection.row?.number, selection.isGone(pages)]).toEqual([12, true]);
    expect((await selected([10, 11], 7)).row?.number).toBe(11);
  });

  it("asks again if another case was selected while the list was on its way", async () => {
    const selection = await selected([10, 11, 12], 2);
    const pages = await listed([7, 8, 10, 11, 12], 11);
    selection.update(pages, 2);
    expect([selection.row?.number, selection.mustAskAgain(pages)]).toEqual([12, true]);
    expect(selection.mustAskAgain(pages)).toBe(false); // once
  });

  it("begins anew in another list", async () => {
    const selection = await selected([10, 11, 12], 1);
    selection.update(await listed([12, 11, 10], null, "deferred"), 0);
    expect(selection.row?.number).toBe(12);
  });

  it("comes back to the case that was open", async () => {
    const selection = new Selection();
    selection.update(await listed([7, 10, 11], 11), 0);
    expect([selection.index, selection.row?.number]).toEqual([2, 11]);
  });
});
