import { expect, it } from "vitest";
import { toldOf } from "../src/alarms";

it("names the sets that an alarm is about, and says that the promise is void", () => {
  const told = toldOf([{ structure: "liver", sets: ["bright"] }], false);
  expect(told).toMatch(/^for the set bright: .*promise is void for them/);
  expect(toldOf([{ structure: "", sets: ["a", "b"] }], false)).toContain("for the sets a and b:");
  expect(toldOf([{ structure: "", sets: [] }], false)).toContain("for the new cases:");
  expect(toldOf([], true)).toBe("");
});

it("names structures where there are several, and not all of many", () => {
  const alarms = ["a", "b", "c", "d", "e"].map((structure) => ({ structure, sets: ["ID"] }));
  expect(toldOf(alarms, true)).toContain("for the set ID (a, b, c and 2 more):");
});
