/** What of a case is shown, and how; the same for pictures and volumes. */

import type { Case, View } from "../api";
import type { Command } from "../keys";
import type { Levels } from "./colours";

export interface Shown {
  overlay: boolean;
  opacity: number;
  mask: boolean;
  truth: boolean;
  levels: Levels;
  /** Those to begin with. */
  usualLevels: Levels;
  slice: number;
  /** Three planes at once, of a volume. */
  multiplanar: boolean;
}

export const FULL_LEVELS: Levels = { low: 0, high: 255 };

export function atFirst(view: View): Shown {
  return {
    overlay: true,
    opacity: 0.45,
    mask: true,
    truth: view.layers.includes("truth"),
    levels: FULL_LEVELS,
    usualLevels: FULL_LEVELS,
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

/** What a painter tells of what happened on the picture itself. */
export interface PainterEvents {
  onChange(change: Partial<Shown>): void;
  onState(state: "loading" | "ready" | "failed", text?: string): void;
}

export type Opened = Case & { view: View };
