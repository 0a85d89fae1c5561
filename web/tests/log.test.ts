import { describe, expect, it, vi } from "vitest";
import type { Entry } from "../src/api";
import { Follower, Standing, joined, lastOf } from "../src/log";

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
  digest: "",
  ...more,
});
const row = { set: "", case: "a", structure: "organ", digest: "" };

describe("Standing", () => {
  it("is about the map that was seen", () => {
    const standing = new Standing([entry(1, "Ann", "accept", { digest: "1" }), entry(2, "Ben", "reject")]);
    const reviewers = (digest: string) => standing.of({ ...row, digest }).map(({ reviewer }) => reviewer);
    expect(["1", "2", ""].map(reviewers)).toEqual([["Ann", "Ben"], ["Ben"], ["Ann", "Ben"]]);
  });

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

describe("Follower", () => {
  it("asks from a little before where it has heard, whatever else is in the log", async () => {
    const all = Array.from({ length: 100 }, (_, i) => entry(i + 1, "Ben", "accept"));
    const ask = vi.fn(async (after: number) => all.slice(after));
    const follower = new Follower(ask, () => {});
    await follower.catchUp();
    await follower.catchUp();
    expect(ask.mock.calls).toEqual([[0], [80]]);
  });

  it("goes on where an answer is full", async () => {
    const all = Array.from({ length: 1500 }, (_, i) => entry(i + 1, "Ann", "accept"));
    const heard: Entry[] = [];
    await new Follower(
      async (after) => all.slice(after, after + 1000),
      (fresh) => heard.push(...fresh),
    ).catchUp();
    expect(new Set(heard.map(({ id }) => id)).size).toBe(1500);
  });

  it("asks again for what did not come", async () => {
    const ask = vi
      .fn<(after: number) => Promise<Entry[]>>()
      .mockRejectedValueOnce(new Error("gone"))
      .mockResolvedValue([]);
    const follower = new Follower(ask, () => {});
    await expect(follower.catchUp()).rejects.toThrow("gone");
    await follower.catchUp();
    expect(ask.mock.calls).toEqual([[0], [0]]);
  });
});
