import { describe, expect, it } from "vitest";
import { clamp, neighbours, pagesOf, scrollToShow, visibleRows } from "../src/virtual";

describe("visibleRows", () => {
  it("draws what is seen and some beyond", () => {
    expect(visibleRows(3000, 300, 30, 20_000, 5)).toEqual({ first: 95, end: 115 });
  });

  it("stays within the list", () => {
    expect(visibleRows(0, 300, 30, 4)).toEqual({ first: 0, end: 4 });
    expect(visibleRows(0, 300, 30, 0)).toEqual({ first: 0, end: 0 });
    expect(visibleRows(1e9, 300, 30, 20)).toEqual({ first: 20, end: 20 });
  });
});

describe("pagesOf", () => {
  it("names each page once", () => {
    expect(pagesOf({ first: 190, end: 420 }, 200)).toEqual([0, 1, 2]);
    expect(pagesOf({ first: 200, end: 400 }, 200)).toEqual([1]);
    expect(pagesOf({ first: 5, end: 5 }, 200)).toEqual([]);
  });
});

describe("scrollToShow", () => {
  it("moves as little as possible", () => {
    expect(scrollToShow(5, 0, 300, 30)).toBe(0);
    expect(scrollToShow(10, 0, 300, 30)).toBe(30);
    expect(scrollToShow(2, 300, 300, 30)).toBe(60);
  });
});

it("clamps, also to an empty range", () => {
  expect([clamp(-1, 0, 5), clamp(9, 0, 5), clamp(3, 0, -1)]).toEqual([0, 5, 0]);
});

describe("neighbours", () => {
  const rows = [{ number: 10 }, { number: 11 }, { number: 12 }];

  it("are beside the case", () => {
    expect(neighbours(rows, 4, 5, 11)).toEqual({ previous: { row: rows[0], at: 4 }, next: { row: rows[2], at: 6 } });
  });

  it("move up when a decided case has left the list", () => {
    expect(neighbours(rows, 4, 5, 99)).toEqual({ previous: { row: rows[0], at: 4 }, next: { row: rows[1], at: 5 } });
  });

  it("end with the list", () => {
    expect(neighbours(rows, 0, 0, 10).previous).toBeNull();
    expect(neighbours(rows, 0, 2, 12).next).toBeNull();
    expect(neighbours([], 0, 0, 1)).toEqual({ previous: null, next: null });
  });
});
