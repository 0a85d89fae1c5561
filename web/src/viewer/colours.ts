/** Colours of layers: for all common forms of colour vision, on dark and bright images. */

/** Viridis at equal steps: bluish to yellow, ever brighter. */
const STOPS = [
  [68, 1, 84],
  [71, 45, 123],
  [59, 82, 139],
  [44, 114, 142],
  [33, 145, 140],
  [39, 173, 129],
  [93, 200, 99],
  [170, 220, 50],
  [253, 231, 37],
] as const;

/** As in the report. */
export const MASK_COLOUR = "#ff7a1a";
export const TRUTH_COLOUR = "#2ee6ff";
export const LETTER_COLOUR = "#e8eef4";

export function viridis(p: number): [number, number, number] {
  const place = Math.min(Math.max(p, 0), 1) * (STOPS.length - 1);
  const below = Math.min(Math.floor(place), STOPS.length - 2);
  const mixed = (channel: 0 | 1 | 2) =>
    Math.round(STOPS[below]![channel] + (place - below) * (STOPS[below + 1]![channel] - STOPS[below]![channel]));
  return [mixed(0), mixed(1), mixed(2)];
}

/** Probabilities near zero hide nothing of the image; from 0.2 on the colour is full. */
export function overlayAlpha(p: number): number {
  return Math.min(1, Math.max(0, (p - 0.02) / 0.18));
}

/** Red, green, blue and alpha of 256 probabilities. */
export function overlayTable(): Uint8ClampedArray {
  const table = new Uint8ClampedArray(4 * 256);
  for (let i = 0; i < 256; i++) table.set([...viridis(i / 255), Math.round(255 * overlayAlpha(i / 255))], 4 * i);
  return table;
}

/** Values of an image that are black and white. */
export interface Levels {
  low: number;
  high: number;
}

export const FULL_LEVELS: Levels = { low: 0, high: 255 };

/** What the 256 greys of a picture that was stretched between two levels become between two others. */
export function greyTable({ low, high }: Levels, made: Levels = FULL_LEVELS): Uint8ClampedArray {
  const span = high > low ? high - low : 1;
  const value = (grey: number) => made.low + (grey / 255) * (made.high - made.low);
  return Uint8ClampedArray.from({ length: 256 }, (_, grey) => (255 * (value(grey) - low)) / span);
}

/** Narrowest and widest window as a share of the range of an image. */
const SPANS = [1 / 1024, 2] as const;

/** Level is the value in the middle, window how far the values around it reach; both are kept within a range. */
export function levelsOf(level: number, window: number, range: Levels): Levels {
  const whole = range.high - range.low || 1;
  const span = Math.min(Math.max(window, SPANS[0] * whole), SPANS[1] * whole);
  const middle = Math.min(Math.max(level, range.low), range.high);
  return { low: middle - span / 2, high: middle + span / 2 };
}

/** Levels after a drag with the other mouse button: sideways is the level, up and down the window. */
export function shiftedLevels({ low, high }: Levels, x: number, y: number, range: Levels): Levels {
  const pixel = (range.high - range.low) / 255;
  return levelsOf((low + high) / 2 + (x / 2) * pixel, high - low + y * pixel, range);
}
