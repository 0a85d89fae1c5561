import { describe, expect, it } from "vitest";
import { BINDINGS, type ViewName, belongsToField, commandOf } from "../src/keys";

describe("commandOf", () => {
  it("depends on the view", () => {
    expect(commandOf({ key: "ArrowDown" }, "worklist")).toBe("next");
    expect(commandOf({ key: "ArrowDown" }, "case")).toBe("slice-down");
    expect(commandOf({ key: "a" }, "case")).toBe("accept");
    expect(commandOf({ key: "a" }, "threshold")).toBeNull();
  });

  it("leaves the browser its shortcuts", () => {
    expect(commandOf({ key: "r", ctrlKey: true }, "worklist")).toBeNull();
    expect(commandOf({ key: "c", metaKey: true }, "case")).toBeNull();
  });

  it("decides once while a key is held down, and moves on", () => {
    expect(commandOf({ key: "a", repeat: true }, "worklist")).toBeNull();
    expect(commandOf({ key: "u", repeat: true }, "case")).toBeNull();
    expect(commandOf({ key: "j", repeat: true }, "worklist")).toBe("next");
  });

  it("is never in doubt", () => {
    for (const view of ["worklist", "case", "threshold", "monitoring"] as ViewName[]) {
      const keys = BINDINGS.filter(({ views }) => views.includes(view)).flatMap((binding) => binding.keys);
      expect(new Set(keys).size).toBe(keys.length);
    }
  });
});

describe("belongsToField", () => {
  it("lets letters be typed", () => {
    expect(belongsToField("TEXTAREA", undefined, "a")).toBe(true);
    expect(belongsToField("INPUT", "search", "j")).toBe(true);
    expect(belongsToField("TEXTAREA", undefined, "Escape")).toBe(false);
  });

  it("lets sliders be moved, and verdicts be given from there", () => {
    expect(belongsToField("INPUT", "range", "ArrowDown")).toBe(true);
    expect(belongsToField("INPUT", "range", "a")).toBe(false);
  });

  it("lets buttons be pressed", () => {
    expect(belongsToField("BUTTON", "button", "Enter")).toBe(true);
    expect(belongsToField("SUMMARY", undefined, "Enter")).toBe(true);
    expect(belongsToField("BUTTON", "button", "j")).toBe(false);
    expect(belongsToField("DIV", undefined, "Enter")).toBe(false);
  });
});
