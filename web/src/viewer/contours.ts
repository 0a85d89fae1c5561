/** Outlines of masks: the edges between pixels inside and outside, exactly where they are. */

export interface Bitmap {
  width: number;
  height: number;
  /** Row by row; not zero is inside. */
  data: Uint8Array;
}

/** Line segments x1, y1, x2, y2, one after the other, in pixels from the left upper corner. */
export type Segments = number[];

/** Edges between unlike neighbours; runs of edges in a line are one segment. The frame of the bitmap is no edge. */
export function outline(mask: Bitmap): Segments {
  return [...horizontalEdges(mask), ...verticalEdges(mask)];
}

function horizontalEdges({ width, height, data }: Bitmap): Segments {
  const segments: Segments = [];
  for (let y = 1; y < height; y++) {
    const differs = (x: number) => !data[y * width + x] !== !data[(y - 1) * width + x];
    runs(width, differs, (from, to) => segments.push(from, y, to, y));
  }
  return segments;
}

function verticalEdges({ width, height, data }: Bitmap): Segments {
  const segments: Segments = [];
  for (let x = 1; x < width; x++) {
    const differs = (y: number) => !data[y * width + x] !== !data[y * width + x - 1];
    runs(height, differs, (from, to) => segments.push(x, from, x, to));
  }
  return segments;
}

function runs(length: number, holds: (i: number) => boolean, found: (from: number, to: number) => void): void {
  let from = -1;
  for (let i = 0; i <= length; i++) {
    const inside = i < length && holds(i);
    if (inside && from < 0) from = i;
    if (!inside && from >= 0) {
      found(from, i);
      from = -1;
    }
  }
}

/** A tile with the first column of its right and the first row of its lower neighbour, so that seams have edges too. */
export function withSeams(tile: Bitmap, right: Bitmap | null, below: Bitmap | null): Bitmap {
  const [width, height] = [tile.width + (right ? 1 : 0), tile.height + (below ? 1 : 0)];
  const data = new Uint8Array(width * height);
  for (let y = 0; y < tile.height; y++) {
    data.set(tile.data.subarray(y * tile.width, (y + 1) * tile.width), y * width);
    if (right) data[y * width + tile.width] = right.data[y * right.width] ?? 0;
  }
  if (below) data.set(below.data.subarray(0, tile.width), tile.height * width);
  // The corner belongs to a third neighbour; it repeats what is beside it, which makes no edge of its own.
  if (right && below) data[width * height - 1] = data[width * height - 2] ?? 0;
  return { width, height, data };
}
