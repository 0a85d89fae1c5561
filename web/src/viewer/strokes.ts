/** Outlines as they are drawn: masks in a full line, truths dashed, both with a dark rim that keeps them legible. */

import { MASK_COLOUR, TRUTH_COLOUR } from "./colours";

export type Outlined = "mask" | "truth";

const STYLES = {
  mask: { colour: MASK_COLOUR, dash: [] },
  truth: { colour: TRUTH_COLOUR, dash: [5, 3] },
};

/** Stroke a path that is already in pixels of the screen. */
export function strokeOutline(context: CanvasRenderingContext2D, path: Path2D, kind: Outlined): void {
  context.save();
  context.lineCap = "square";
  context.lineWidth = 3.5;
  context.strokeStyle = "rgb(0 0 0 / 55%)";
  context.stroke(path);
  context.lineWidth = 1.6;
  context.setLineDash(STYLES[kind].dash);
  context.strokeStyle = STYLES[kind].colour;
  context.stroke(path);
  context.restore();
}

/** Segments as a path on the screen. */
export function pathOf(segments: number[], toScreen: (x: number, y: number) => [number, number]): Path2D {
  const path = new Path2D();
  for (let i = 0; i + 3 < segments.length; i += 4) {
    path.moveTo(...toScreen(segments[i]!, segments[i + 1]!));
    path.lineTo(...toScreen(segments[i + 2]!, segments[i + 3]!));
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
