import { describe, expect, it } from "vitest";
import type { Entry } from "../src/api";
import { Standing, joined, lastOf } from "../src/log";

const entry = (id: number, reviewer: string, verdict: Entry["verdict"], more: Partial<Entry> = {}): Entry => ({
  id,
  reviewer,
  verdict,
  set: "",
  case: "a",
  structure: "organ",
  comment: "",
  time: "",
  undoes: null,
  ...more,
});
const row = { set: "", case: "a", structure: "organ" };

describe("Standing", () => {
  it("keeps the last verdict of each reviewer", () => {
    const standing = new Standing([entry(1, "Ann", "accept"), entry(2, "Ben", "reject"), entry(3, "Ann", "correct")]);
    expect(
      standing
        .of(row)
        .map(({ id }) => id)
        .sort(),
    ).toEqual([2, 3]);
    expect(standing.mine(row, "Ann")?.verdict).toBe("correct");
    expect(standing.mine(row, "Cem")).toBeNull();
    expect(standing.decided).toBe(1);
  });

  it("goes back to the verdict before one that is taken back", () => {
    const standing = new Standing([
      entry(1, "Ann", "accept"),
      entry(2, "Ann", "reject"),
      entry(3, "Ann", "", { undoes: 2 }),
    ]);
    expect(standing.mine(row, "Ann")?.id).toBe(1);
  });

  it("tells sets and structures apart; no set is the empty one", () => {
    const standing = new Standing([
      entry(1, "Ann", "accept", { set: "ood" }),
      entry(2, "Ann", "reject", { structure: "other" }),
    ]);
    expect(standing.of(row)).toEqual([]);
    expect(new Standing([entry(1, "Ann", "accept", { set: null })]).of(row)).toHaveLength(1);
  });

  it("does not mix up names that hold separators", () => {
    expect(new Standing([entry(1, "Ann", "accept", { case: "a,organ" })]).of(row)).toEqual([]);
  });
});

describe("joined", () => {
  it("has each entry once, in order", () => {
    const log = joined(
      [entry(1, "Ann", "accept"), entry(3, "Ann", "accept")],
      [entry(3, "Ann", "accept"), entry(2, "Ben", "reject")],
    );
    expect(log.map(({ id }) => id)).toEqual([1, 2, 3]);
  });

  it("is the same log if there is nothing new", () => {
    const log = [entry(1, "Ann", "accept")];
    expect(joined(log, [entry(1, "Ann", "accept")])).toBe(log);
  });
});

it("finds the last verdict that can be taken back", () => {
  const log = [
    entry(1, "Ann", "accept"),
    entry(2, "Ann", "reject"),
    entry(3, "Ann", "", { undoes: 2 }),
    entry(4, "Ben", "accept"),
  ];
  expect(lastOf(log, "Ann")?.id).toBe(1);
  expect(lastOf(log, "Cem")).toBeNull();
});
