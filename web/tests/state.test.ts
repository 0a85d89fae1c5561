import { describe, expect, it, vi } from "vitest";
import { Latest } from "../src/latest";
import { readRoute, writeRoute } from "../src/route";
import { extentOf, quantiles, rollingMedian } from "../src/statistics";
import { Store } from "../src/store";
import { linePath, scale, ticks } from "../src/parts/chart";
import { greyTable, overlayAlpha, overlayTable, viridis } from "../src/viewer/colours";
import { atFirst, changeBy, sliceCount } from "../src/viewer/layers";
import { ariaSort, sortedBy } from "../src/views/columns";
import type { View } from "../src/api";

describe("route", () => {
  it("comes back as it was written", () => {
    const route = { view: "case" as const, number: 12, at: 34, query: { search: "a b&c", verdict: "undecided" } };
    expect(readRoute(writeRoute(route))).toEqual(route);
  });

  it("is the worklist for whatever is not known", () => {
    expect(readRoute("#/case/../../etc?evil=1&at=-5")).toEqual({ view: "worklist", number: null, at: 0, query: {} });
    expect(readRoute("")).toMatchObject({ view: "worklist" });
  });
});

describe("Store", () => {
  it("tells of changes, and only of those", () => {
    const store = new Store({ a: 1 });
    const heard = vi.fn();
    const stop = store.subscribe(heard);
    store.set(store.value);
    store.update({ a: 2 });
    stop();
    store.update({ a: 3 });
    expect(heard).toHaveBeenCalledTimes(1);
    expect(store.value).toEqual({ a: 3 });
  });
});

describe("Latest", () => {
  it("skips what is outdated, never the newest", async () => {
    const asked: number[] = [];
    const answers: number[] = [];
    const latest = new Latest(
      async (question: number) => {
        asked.push(question);
        return question;
      },
      (answer) => answers.push(answer),
      () => {},
    );
    for (const question of [1, 2, 3, 4]) latest.put(question);
    await vi.waitFor(() => expect(answers.at(-1)).toBe(4));
    expect(asked).toEqual([1, 4]);
  });

  it("goes on after an error", async () => {
    const errors: string[] = [];
    const answers: number[] = [];
    const latest = new Latest(
      async (question: number) => {
        if (question === 1) throw new Error("no");
        return question;
      },
      (answer) => answers.push(answer),
      (error) => errors.push(error.message),
    );
    latest.put(1);
    latest.put(2);
    await vi.waitFor(() => expect(answers).toEqual([2]));
    expect(errors).toEqual(["no"]);
  });
});

describe("charts", () => {
  it("have round ticks", () => {
    expect(ticks([0, 1])).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(ticks([0.941, 0.983], 5)).toEqual([0.95, 0.96, 0.97, 0.98]);
    expect(ticks([3, 3])).toEqual([3]);
  });

  it("leave gaps where a value is missing", () => {
    const line = linePath([0, 1, 2, 3], [0, null, 2, 3], scale([0, 10], [0, 10]), scale([0, 10], [0, 10]));
    expect(line).toBe("M0.0,0.0M2.0,2.0L3.0,3.0");
  });

  it("summarise without values that are none", () => {
    expect(quantiles([3, 1, Number.NaN, 2], [0, 0.5, 1])).toEqual([1, 2, 3]);
    expect(quantiles([], [0.5])).toEqual([]);
    expect(extentOf([0.4, 0.2])).toEqual([0.2, 0.4]);
    expect(rollingMedian([1, 9, 2], 3)).toEqual([9, 2, 9]);
  });
});

describe("colours", () => {
  it("run from dark to bright and hide nothing where nothing is", () => {
    expect([viridis(0), viridis(1)]).toEqual([
      [68, 1, 84],
      [253, 231, 37],
    ]);
    expect([overlayAlpha(0), overlayAlpha(1)]).toEqual([0, 1]);
    expect(overlayTable()).toHaveLength(1024);
  });

  it("stretch greys between two levels", () => {
    const table = greyTable({ low: 100, high: 200 });
    expect([table[50], table[150], table[250]]).toEqual([0, 128, 255]);
  });
});

describe("layers", () => {
  const view: View = {
    dimensions: 3,
    shape: [38, 46, 33],
    spacing_mm: null,
    layers: ["image", "mask"],
    levels: 1,
    tile: 256,
    slices: { middle: 19, uncertain: 16 },
  };

  it("begin with the most uncertain slice", () => {
    expect(atFirst(view)).toMatchObject({ slice: 16, truth: false });
    expect([sliceCount(view), sliceCount({ ...view, dimensions: 2, shape: [46, 33] })]).toEqual([38, 1]);
  });

  it("change by keys, within bounds", () => {
    const last = { ...atFirst(view), slice: 37, opacity: 0.95 };
    expect(changeBy("slice-up", last, view)).toEqual({ slice: 37 });
    expect(changeBy("middle", last, view)).toEqual({ slice: 19 });
    expect(changeBy("more-opacity", last, view)).toEqual({ overlay: true, opacity: 1 });
    expect(changeBy("accept", last, view)).toBeNull();
  });
});

describe("columns", () => {
  const dice = { name: "dice", title: "Dice", sort: "dice" } as const;

  it("turn around at the second click", () => {
    expect(sortedBy(dice, {})).toEqual({ sort: "dice", descending: "" });
    expect(sortedBy(dice, { sort: "dice" })).toEqual({ sort: "dice", descending: "true" });
    expect(sortedBy(dice, { sort: "dice", descending: "true" })).toEqual({ sort: "dice", descending: "" });
  });

  it("tell their order", () => {
    expect(ariaSort(dice, {})).toBe("none");
    expect(ariaSort(dice, { sort: "dice", descending: "true" })).toBe("descending");
    expect(ariaSort({ name: "margin", title: "Margin" }, {})).toBeUndefined();
  });
});
