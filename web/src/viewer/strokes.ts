/** Outlines as they are drawn: masks in a full line, truths dashed, both with a dark rim that keeps them legible. */

import type { Line } from "./contours";
import { MASK_COLOUR, TRUTH_COLOUR } from "./colours";

export type Outlined = "mask" | "truth";

const STYLES = {
  mask: { colour: MASK_COLOUR, dash: [] },
  truth: { colour: TRUTH_COLOUR, dash: [5, 3] },
};

/** Stroke a path that is already in pixels of the screen. */
export function strokeOutline(context: CanvasRenderingContext2D, path: Path2D, kind: Outlined, width = 1.6): void {
  context.save();
  context.lineJoin = "round";
  context.lineWidth = width + 1.6;
  context.strokeStyle = "rgb(0 0 0 / 50%)";
  context.stroke(path);
  context.lineWidth = width;
  context.setLineDash(STYLES[kind].dash);
  context.strokeStyle = STYLES[kind].colour;
  context.stroke(path);
  context.restore();
}

/** Lines as a path on the screen. */
export function pathOf(lines: Line[], toScreen: (x: number, y: number) => [number, number]): Path2D {
  const path = new Path2D();
  for (const line of lines) {
    path.moveTo(...toScreen(line[0]!, line[1]!));
    for (let i = 2; i + 1 < line.length; i += 2) path.lineTo(...toScreen(line[i]!, line[i + 1]!));
  }
  return path;
}

/** Make a canvas as large as its place on the screen, in pixels of the device. Returns the ratio of both. */
export function sharpen(canvas: HTMLCanvasElement): number {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  return ratio;
}
