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

export const MASK_COLOUR = "#56b4e9";
export const TRUTH_COLOUR = "#ff9d2e";

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

export interface Levels {
  /** Grey that is shown black, and the one that is shown white, from 0 to 255. */
  low: number;
  high: number;
}

/** What 256 values of grey become between two levels. */
export function greyTable({ low, high }: Levels): Uint8ClampedArray {
  const span = Math.max(high - low, 1);
  return Uint8ClampedArray.from({ length: 256 }, (_, i) => (255 * (i - low)) / span);
}
