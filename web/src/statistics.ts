/** Summaries for charts only; whatever is decided on comes from the server. */

/** Quantiles of the finite values; none of no value. */
export function quantiles(values: number[], wanted: number[]): number[] {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return [];
  return wanted.map((share) => sorted[Math.round(share * (sorted.length - 1))]!);
}

/** The median of each value and those around it. */
export function rollingMedian(values: number[], width: number): (number | null)[] {
  const half = Math.floor(width / 2);
  return values.map((_, i) => quantiles(values.slice(Math.max(0, i - half), i + half + 1), [0.5])[0] ?? null);
}

/** The lowest and the highest of the finite values. */
export function extentOf(values: number[]): [number, number] {
  const [low = 0, high = 1] = quantiles(values, [0, 1]);
  return [low, high];
}

/** From where to where bars go: 0 to 1, as they are read, unless confidences lie elsewhere. */
export function meterRange([low, high]: [number, number]): [number, number] {
  return low >= 0 && high <= 1 ? [0, 1] : [low, high];
}

/** Thresholds that a slider stops at, from the lowest to the highest: each accepts other cases than the next. */
export function stopsOf(thresholds: number[], own: number | null | undefined): number[] {
  return [...new Set(own == null ? thresholds : [...thresholds, own])].sort((a, b) => a - b);
}

/** Where among sorted values the one next to a value is. */
export function nearest(sorted: number[], value: number): number {
  return sorted.reduce((best, each, i) => (Math.abs(each - value) < Math.abs(sorted[best]! - value) ? i : best), 0);
}
