import { describe, expect, it } from "vitest";
import { fit, levelFor, placeOf, tilesInView, zoomAt } from "../src/viewer/tiles";

describe("levelFor", () => {
  it("has at least a pixel for each pixel of the screen", () => {
    expect([4, 1, 0.6, 0.5, 0.26, 0.25, 0.01].map((scale) => levelFor(scale, 5))).toEqual([0, 0, 0, 1, 1, 2, 4]);
  });
});

describe("fit", () => {
  it("shows all, in the middle", () => {
    const camera = fit({ width: 100, height: 50, aspect: 1 }, { width: 224, height: 224 }, 12);
    expect(camera).toEqual({ scale: 2, x: 12, y: 62 });
  });

  it("lets pixels be as tall as they are", () => {
    const camera = fit({ width: 50, height: 50, aspect: 2 }, { width: 224, height: 224 }, 12);
    expect(camera).toEqual({ scale: 2, x: 62, y: 12 });
  });

  it("survives a screen without room", () => {
    expect(fit({ width: 100, height: 50, aspect: 1 }, { width: 0, height: 0 }).scale).toBeGreaterThan(0);
  });
});

it("zooms around the pointer", () => {
  const camera = { scale: 1, x: 10, y: 20 };
  const zoomed = zoomAt(camera, 2, 110, 70);
  expect((110 - zoomed.x) / zoomed.scale).toBeCloseTo((110 - camera.x) / camera.scale);
  expect((70 - zoomed.y) / zoomed.scale).toBeCloseTo((70 - camera.y) / camera.scale);
});

describe("tilesInView", () => {
  const picture = { width: 1000, height: 600, aspect: 1 };
  const screen = { width: 300, height: 300 };

  it("has those that the screen touches, and no others", () => {
    const tiles = tilesInView({ scale: 1, x: -256, y: -10 }, screen, picture, 0, 256);
    expect(tiles.map(({ row, column }) => [row, column])).toEqual([
      [0, 1],
      [0, 2],
      [1, 1],
      [1, 2],
    ]);
    expect(tiles[0]).toMatchObject({ x: 256, y: 0 });
  });

  it("counts rows of tall pixels", () => {
    const tall = { ...picture, aspect: 2 };
    const rows = (y: number) => tilesInView({ scale: 1, x: 0, y }, { width: 9, height: 300 }, tall, 0, 256);
    expect(rows(0).map(({ row }) => row)).toEqual([0]);
    expect(rows(-512).map(({ row }) => row)).toEqual([1]);
    expect(rows(-300).map(({ row }) => row)).toEqual([0, 1]);
  });

  it("ends with the picture", () => {
    const tiles = tilesInView({ scale: 0.1, x: 0, y: 0 }, screen, picture, 2, 256);
    expect(tiles.map(({ row, column }) => [row, column])).toEqual([[0, 0]]);
  });

  it("is empty if the picture is elsewhere", () => {
    expect(tilesInView({ scale: 1, x: 5000, y: 0 }, screen, picture, 0, 256)).toEqual([]);
  });
});

describe("placeOf", () => {
  const picture = { width: 1000, height: 600, aspect: 1.7 };

  it.each([1, 1.25, 2])("lets neighbours have one edge, on a pixel of the device, at a ratio of %d", (ratio) => {
    for (const scale of [0.37, 1.01, 3.3]) {
      const camera = { scale, x: -17.3, y: 5.21 };
      const at = (x: number, y: number) => placeOf(camera, picture, { x, y, width: 256, height: 256 }, ratio);
      const [left, top, width, height] = at(0, 0);
      expect(at(256, 0)[0]).toBeCloseTo(left + width, 9);
      expect(at(0, 256)[1]).toBeCloseTo(top + height, 9);
      for (const edge of [left, top, left + width, top + height]) {
        expect(edge * ratio).toBeCloseTo(Math.round(edge * ratio), 9);
      }
      expect(Math.abs(width - scale * 256)).toBeLessThanOrEqual(1 / ratio);
      expect(Math.abs(height - scale * 256 * picture.aspect)).toBeLessThanOrEqual(1 / ratio);
    }
  });
});
