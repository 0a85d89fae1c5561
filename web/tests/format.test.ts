import { expect, it } from "vitest";
import { anything, count, exactPercent, hours, margin, number, percent, significant, time } from "../src/format";

it("writes numbers, and a dash for none", () => {
  expect([number(0.12345), number(-0.5, 1), number(null), number(Number.NaN)]).toEqual(["0.123", "−0.5", "–", "–"]);
});

it("tells on which side of a threshold a case is, however near", () => {
  expect([margin(0.012), margin(-0.5), margin(-0.00012), margin(0), margin(null)]).toEqual([
    "+0.012",
    "−0.500",
    "−0.000120",
    "0.000",
    "–",
  ]);
});

it("writes shares as per cent", () => {
  expect([percent(0.9634), percent(1, 0), percent(undefined)]).toEqual(["96.3\u202f%", "100\u202f%", "–"]);
});

it("promises no more than there is", () => {
  expect([0.95, 0.975, 1 - 0.05 / 3].map(exactPercent)).toEqual(["95\u202f%", "97.5\u202f%", "98.333333\u202f%"]);
});

it("sets thousands apart", () => {
  expect([count(999), count(20_000), count(1_234_567), count(null)]).toEqual([
    "999",
    "20\u2009000",
    "1\u2009234\u2009567",
    "–",
  ]);
});

it("writes time of work", () => {
  expect([hours(0.25), hours(3.333), hours(41.2), hours(null)]).toEqual(["15 min", "3.3 h", "41 h", "–"]);
});

it("writes the date only if it is another day", () => {
  const now = new Date(2026, 10, 16, 12, 0);
  expect(time(new Date(2026, 10, 16, 9, 5).toISOString(), now)).toBe("09:05");
  expect(time(new Date(2026, 10, 15, 9, 5).toISOString(), now)).toBe("2026-11-15 09:05");
  expect(time("yesterday", now)).toBe("yesterday");
});

it("writes a threshold with its digits alone", () => {
  expect([significant(0.975), significant(-2), significant(0.9499604611), significant(null)]).toEqual([
    "0.975",
    "−2",
    "0.94996",
    "–",
  ]);
});

it("writes large values of a table as it writes counts", () => {
  expect([anything(14_203.44), anything(15_033), anything(-1_234_567.89), anything(2.5e9 + 0.5)]).toEqual([
    "14\u2009203.4",
    "15\u2009033",
    "−1\u2009234\u2009567.9",
    "2.50e+9",
  ]);
});

it("writes whatever a table holds", () => {
  expect([anything(12), anything(0.5), anything(2.48e-6), anything("<b>"), anything(null), anything(0)]).toEqual([
    "12",
    "0.5000",
    "2.48e-6",
    "<b>",
    "–",
    "0",
  ]);
});
