import { describe, expect, it } from "vitest";
import { fit, levelFor, tilesInView, zoomAt } from "../src/viewer/tiles";

describe("levelFor", () => {
  it("has at least a pixel for each pixel of the screen", () => {
    expect([4, 1, 0.6, 0.5, 0.26, 0.25, 0.01].map((scale) => levelFor(scale, 5))).toEqual([0, 0, 0, 1, 1, 2, 4]);
  });
});

describe("fit", () => {
  it("shows all, in the middle", () => {
    const camera = fit({ width: 100, height: 50 }, { width: 224, height: 224 }, 12);
    expect(camera).toEqual({ scale: 2, x: 12, y: 62 });
  });

  it("survives a screen without room", () => {
    expect(fit({ width: 100, height: 50 }, { width: 0, height: 0 }).scale).toBeGreaterThan(0);
  });
});

it("zooms around the pointer", () => {
  const camera = { scale: 1, x: 10, y: 20 };
  const zoomed = zoomAt(camera, 2, 110, 70);
  expect((110 - zoomed.x) / zoomed.scale).toBeCloseTo((110 - camera.x) / camera.scale);
  expect((70 - zoomed.y) / zoomed.scale).toBeCloseTo((70 - camera.y) / camera.scale);
});

describe("tilesInView", () => {
  const picture = { width: 1000, height: 600 };
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

  it("ends with the picture", () => {
    const tiles = tilesInView({ scale: 0.1, x: 0, y: 0 }, screen, picture, 2, 256);
    expect(tiles.map(({ row, column }) => [row, column])).toEqual([[0, 0]]);
  });

  it("is empty if the picture is elsewhere", () => {
    expect(tilesInView({ scale: 1, x: 5000, y: 0 }, screen, picture, 0, 256)).toEqual([]);
  });
});
