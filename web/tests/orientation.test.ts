import { describe, expect, it } from "vitest";
import { PLANES, axesOf, planeOf, sidesOf, sliceDirection, turned } from "../src/viewer/orientation";

const AXIAL = [0, 1, 2] as const;
/** A volume of 3 × 2 × 2 voxels whose only voxel inside is (2, 0, 1). */
const LENGTHS = [3, 2, 2];
const DATA = Uint8Array.from({ length: 12 }, (_, i) => (i === 2 + 0 * 3 + 1 * 6 ? 1 : 0));

function inside(permutation: number[], plane: readonly [number, number, number], at: number): number[][] {
  const { width, data } = planeOf(DATA, axesOf(permutation, LENGTHS), plane, at);
  return [...data].flatMap((value, i) => (value ? [[i % width, Math.floor(i / width)]] : []));
}

describe("planeOf", () => {
  it("is a slice of an upright volume", () => {
    expect(inside([1, 2, 3], AXIAL, 1)).toEqual([[2, 0]]);
    expect(inside([1, 2, 3], AXIAL, 0)).toEqual([]);
  });

  it("turns axes around that run the other way", () => {
    expect(inside([-1, -2, 3], AXIAL, 1)).toEqual([[0, 1]]);
    expect(inside([1, 2, -3], AXIAL, 0)).toEqual([[2, 0]]);
  });

  it("exchanges axes", () => {
    expect(inside([2, 1, 3], AXIAL, 1)).toEqual([[0, 2]]);
    expect(inside([1, 2, 3], [1, 2, 0], 2)).toEqual([[0, 1]]);
  });
});

it("counts slices along the third axis of the file, wherever it runs", () => {
  expect(
    [
      [1, 2, 3],
      [3, 1, 2],
      [1, -3, 2],
    ].map((each) => sliceDirection(axesOf(each, LENGTHS))),
  ).toEqual([2, 0, 1]);
});

it("turns an index there and back", () => {
  const [axis] = axesOf([-1, 2, 3], LENGTHS);
  expect([turned(axis, 0), turned(axis, turned(axis, 1))]).toEqual([2, 1]);
});

it("names the sides of axial, coronal and sagittal planes", () => {
  expect(PLANES.map((plane) => sidesOf(plane!))).toEqual(["RLAP", "RLSI", "APSI"]);
});
