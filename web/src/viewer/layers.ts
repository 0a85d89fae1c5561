/** What of a case is shown, and how; the same for pictures and volumes. */

import type { Case, View } from "../api";
import type { Command } from "../keys";
import { FULL_LEVELS, type Levels } from "./colours";

export interface Shown {
  overlay: boolean;
  opacity: number;
  mask: boolean;
  truth: boolean;
  levels: Levels;
  slice: number;
  /** Three planes at once, of a volume. */
  multiplanar: boolean;
}

/** All values of the image of a case. */
export function rangeOf({ window }: View): Levels {
  return window ? { low: window.least, high: window.most } : FULL_LEVELS;
}

/** Black and white to begin with. */
export function usualLevels({ window }: View): Levels {
  return window ? { low: window.low, high: window.high } : FULL_LEVELS;
}

export function atFirst(view: View): Shown {
  return {
    overlay: true,
    opacity: view.layers.includes("image") ? 0.45 : 1,
    mask: true,
    truth: view.layers.includes("truth"),
    levels: usualLevels(view),
    slice: view.slices?.uncertain ?? 0,
    multiplanar: false,
  };
}

/** How many slices there are; 1 for a picture. A volume is (slices, rows, columns). */
export function sliceCount(view: View): number {
  return view.dimensions === 3 ? (view.shape[0] ?? 1) : 1;
}

/** What a key makes of what is shown; null if it means something else. */
export function changeBy(command: Command, shown: Shown, view: View): Partial<Shown> | null {
  const to = (slice: number) => ({ slice: Math.min(Math.max(slice, 0), sliceCount(view) - 1) });
  switch (command) {
    case "toggle-overlay":
      return { overlay: !shown.overlay };
    case "toggle-mask":
      return { mask: !shown.mask };
    case "toggle-truth":
      return { truth: !shown.truth };
    case "less-opacity":
      return { overlay: true, opacity: rounded(Math.max(0, shown.opacity - 0.1)) };
    case "more-opacity":
      return { overlay: true, opacity: rounded(Math.min(1, shown.opacity + 0.1)) };
    case "slice-up":
      return to(shown.slice + 1);
    case "slice-down":
      return to(shown.slice - 1);
    case "middle":
      return view.slices ? to(view.slices.middle) : null;
    case "uncertain":
      return view.slices ? to(view.slices.uncertain) : null;
    default:
      return null;
  }
}

function rounded(value: number): number {
  return Math.round(100 * value) / 100;
}

/** One way to draw a case on the screen. */
export interface Painter {
  show(shown: Shown): void;
  zoom(factor: number): void;
  fit(): void;
  stop(): void;
}

/** "refining": all is seen, some of it coarser than it will be. */
export type PictureState = "loading" | "refining" | "ready" | "failed";

/** What a painter tells of what happened on the picture itself. */
export interface PainterEvents {
  onChange(change: Partial<Shown>): void;
  onState(state: PictureState, text?: string): void;
}

export type Opened = Case & { view: View };
