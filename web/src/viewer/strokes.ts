/** Outlines as they are drawn: masks in a full line, truths dashed, both with a dark rim that keeps them legible. */

import type { Line } from "./contours";
import { LETTER_COLOUR, MASK_COLOUR, TRUTH_COLOUR } from "./colours";
import type { Place } from "./tiles";

export type Outlined = "mask" | "truth";

const STYLES = {
  mask: { colour: MASK_COLOUR, dash: [] },
  truth: { colour: TRUTH_COLOUR, dash: [5, 3] },
};

/** Stroke a path that is already in pixels of the screen. */
export function strokeOutline(context: CanvasRenderingContext2D, path: Path2D, kind: Outlined, width = 1.6): void {
  context.save();
  context.lineJoin = "round";
  context.setLineDash(STYLES[kind].dash); // also of the rim: where both lines coincide, both are seen
  context.lineWidth = width + 1.6;
  context.strokeStyle = "rgb(0 0 0 / 65%)";
  context.stroke(path);
  context.lineWidth = width;
  context.strokeStyle = STYLES[kind].colour;
  context.stroke(path);
  context.restore();
}

const LETTER_PIXELS = 13;

/** Write the sides of the body at the left and on top of a picture, within it. */
export function writeSides(context: CanvasRenderingContext2D, letters: string, [left, top, width, height]: Place): void {
  if (!letters) return;
  context.save();
  context.font = `600 ${LETTER_PIXELS}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeStyle = "rgb(0 0 0 / 75%)";
  context.fillStyle = LETTER_COLOUR;
  const write = (letter: string, x: number, y: number) => {
    context.strokeText(letter, x, y);
    context.fillText(letter, x, y);
  };
  context.textAlign = "left";
  write(letters[0]!, left + 4, top + height / 2);
  context.textAlign = "center";
  write(letters[2]!, left + width / 2, top + LETTER_PIXELS / 2 + 3);
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

/** Make a canvas as large as its place on the screen, in pixels of the device, and empty. Returns the ratio of both. */
export function sharpen(canvas: HTMLCanvasElement): number {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  } else empty(canvas);
  return ratio;
}

/**
 * Remove all that was drawn, in two parts.
 *
 * Chromium 156 may go on to show what was there if the whole canvas is cleared at once and nothing is drawn thereafter:
 * the outline of one slice then stayed on others, where nothing is found.
 */
function empty(canvas: HTMLCanvasElement): void {
  const context = canvas.getContext("2d")!;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, 1);
  context.clearRect(0, 1, canvas.width, canvas.height - 1);
}
