import { beforeEach, describe, expect, it } from "vitest";
import type { Row } from "../src/api";
import { Requests } from "../src/requests";

const row = { number: 3, set: "", case: "a", structure: "organ", digest: "crc32:1" } as Row;
const said = { verdict: "accept", comment: "fine", reviewer: "Ann" } as const;

function storage() {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
}

describe("Requests", () => {
  let kept = storage();
  beforeEach(() => {
    kept = storage();
  });

  it("names what is sent again as before, also after a reload and under another number", () => {
    const name = new Requests(kept).nameOf(row, said);
    expect(name).toMatch(/^[0-9a-f]{32}$/);
    expect(new Requests(kept).nameOf({ ...row, number: 7 }, said)).toBe(name);
  });

  it("names anew what is another verdict, comment, reviewer, case or map", () => {
    const others: [Row, Parameters<Requests["nameOf"]>[1]][] = [
      [row, { ...said, verdict: "reject" }],
      [row, { ...said, comment: "" }],
      [row, { ...said, reviewer: "Bob" }],
      [{ ...row, case: "b" }, said],
      [{ ...row, digest: "crc32:2" }, said],
    ];
    const requests = new Requests(kept);
    const names = [requests.nameOf(row, said), ...others.map(([each, what]) => requests.nameOf(each, what))];
    expect(new Set(names).size).toBe(6);
  });

  it("names anew what is said once more after an answer", () => {
    const requests = new Requests(kept);
    const name = requests.nameOf(row, said);
    requests.answered(row);
    expect(requests.nameOf(row, said)).not.toBe(name);
  });
});
