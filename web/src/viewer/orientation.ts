/** How the array of a volume lies in the room: NiiVue shows it right, anterior, superior, whatever its own order. */

import type { Bitmap } from "./contours";

export interface Axis {
  /** Of the array that runs along this direction of the room. */
  native: number;
  /** Whether it runs the other way. */
  isFlipped: boolean;
  length: number;
}

/** The directions right, anterior, superior. */
export type Axes = readonly [Axis, Axis, Axis];

/** Directions that go right and up on the screen, and the one that goes through it. */
export type Plane = readonly [across: number, up: number, through: number];

/** By NiiVue's number of a plane: axial, coronal, sagittal. */
export const PLANES: readonly (Plane | undefined)[] = [
  [0, 1, 2],
  [0, 2, 1],
  [1, 2, 0],
];

/** Sides of the body where a direction leads to, and where it comes from: in a body the former are left and on top. */
const SIDES = ["RL", "AP", "SI"] as const;

/** The sides that are left, right, on top and at the bottom of a plane. */
export function sidesOf([across, up]: Plane): string {
  return SIDES[across]! + SIDES[up]!;
}

/** The axis of a NIfTI file along which the desk counts slices. */
const SLICE_AXIS = 2;

/** Read NiiVue's permutation: for each direction the number of the axis from 1 on, negative if it runs the other way. */
export function axesOf(permutation: readonly number[], lengths: readonly number[]): Axes {
  const axis = (direction: number): Axis => {
    const signed = permutation[direction] ?? direction + 1;
    const native = Math.abs(signed) - 1;
    return { native, isFlipped: signed < 0, length: lengths[native] ?? 1 };
  };
  return [axis(0), axis(1), axis(2)];
}

/** The direction in which slices are counted. */
export function sliceDirection(axes: Axes): number {
  return axes.findIndex((axis) => axis.native === SLICE_AXIS);
}

/** From a place along a direction to the index of the array, and back: turning around twice changes nothing. */
export function turned({ isFlipped, length }: Axis, index: number): number {
  return isFlipped ? length - 1 - index : index;
}

/** One plane of a mask, as it lies in the room; `at` counts along the third direction. The first axis of the data runs fastest. */
export function planeOf(data: ArrayLike<number>, axes: Axes, [across, up, through]: Plane, at: number): Bitmap {
  const steps = stepsOf(axes);
  const offset = (direction: number, index: number) =>
    turned(axes[direction]!, index) * steps[axes[direction]!.native]!;
  const [width, height] = [axes[across]!.length, axes[up]!.length];
  const bitmap = new Uint8Array(width * height);
  for (let y = 0; y < height; y++) {
    const start = offset(through, at) + offset(up, y);
    for (let x = 0; x < width; x++) bitmap[y * width + x] = data[start + offset(across, x)] ? 1 : 0;
  }
  return { width, height, data: bitmap };
}

/** How far apart neighbours along each axis of the array are. */
function stepsOf(axes: Axes): number[] {
  const lengths = [1, 1, 1];
  for (const axis of axes) lengths[axis.native] = axis.length;
  return [1, lengths[0]!, lengths[0]! * lengths[1]!];
}
