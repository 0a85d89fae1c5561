import { describe, expect, it, vi } from "vitest";
import { Latest } from "../src/latest";
import { readRoute, writeRoute } from "../src/route";
import { extentOf, meterRange, nearest, quantiles, rollingMedian, stopsOf } from "../src/statistics";
import { Store } from "../src/store";
import { linePath, scale, ticks } from "../src/parts/chart";
import { greyTable, levelsOf, overlayAlpha, overlayTable, shiftedLevels, viridis } from "../src/viewer/colours";
import { atFirst, changeBy, rangeOf, sliceCount } from "../src/viewer/layers";
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

  it("show confidences from 0 to 1, and others by their own range", () => {
    expect([meterRange([0.737, 0.774]), meterRange([0, 1])]).toEqual([
      [0, 1],
      [0, 1],
    ]);
    expect([meterRange([-0.4, 0]), meterRange([0.2, 31])]).toEqual([
      [-0.4, 0],
      [0.2, 31],
    ]);
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

  it("stretch greys that were stretched before", () => {
    const table = greyTable({ low: 0, high: 300 }, { low: -200, high: 600 });
    expect([table[51], table[102], table[153], table[204]]).toEqual([0, 102, 238, 255]);
  });

  it("keep window and level within the range of the image", () => {
    const range = { low: -1000, high: 3000 };
    expect(levelsOf(40, 400, range)).toEqual({ low: -160, high: 240 });
    expect(levelsOf(9000, 400, range)).toEqual({ low: 2800, high: 3200 });
    expect(levelsOf(0, 1e9, range)).toEqual({ low: -4000, high: 4000 });
    expect(levelsOf(0, -5, range)).toEqual({ low: -1.953125, high: 1.953125 });
    const dragged = shiftedLevels({ low: 0, high: 255 }, 20, -55, { low: 0, high: 255 });
    expect(dragged).toEqual({ low: 37.5, high: 237.5 });
    expect(levelsOf(7, 3, { low: 7, high: 7 }).high).toBeGreaterThan(7); // an image of one value
  });
});

describe("slider", () => {
  it("stops at each threshold once, also at the policy’s own", () => {
    expect(stopsOf([0.9, 0.5, 0.5, 0.1], 0.7)).toEqual([0.1, 0.5, 0.7, 0.9]);
    expect(stopsOf([0.9, 0.1], null)).toEqual([0.1, 0.9]);
  });

  it("stands at the nearest stop", () => {
    expect([0, 0.29, 0.31, 0.7, 2].map((value) => nearest([0.1, 0.5, 0.7], value))).toEqual([0, 0, 1, 2, 2]);
  });
});

describe("layers", () => {
  const view: View = {
    dimensions: 3,
    shape: [38, 46, 33],
    plane: { rows: 46, columns: 33, aspect: 1, letters: "" },
    spacing_mm: null,
    layers: ["image", "mask"],
    levels: 1,
    tile: 256,
    slices: { middle: 19, uncertain: 16 },
    window: null,
    note: "",
  };

  it("begin with the usual window of the image", () => {
    const window = { low: -100, high: 300, least: -1024, most: 3071 };
    expect(atFirst(view).levels).toEqual({ low: 0, high: 255 });
    expect(atFirst({ ...view, window }).levels).toEqual({ low: -100, high: 300 });
    expect(rangeOf({ ...view, window })).toEqual({ low: -1024, high: 3071 });
  });

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
