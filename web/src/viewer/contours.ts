/** Outlines of masks: lines that run halfway between pixels inside and outside. */

export interface Bitmap {
  width: number;
  height: number;
  /** Row by row; not zero is inside. */
  data: Uint8Array;
}

/** Points x, y, x, y, … of one line, in pixels from the left upper corner. A closed line ends where it begins. */
export type Line = number[];

/** An edge between two unlike pixels, from corner to corner, with the inside to its right. */
interface Edge {
  from: number;
  to: number;
}

/** Sides of a bitmap beyond which there is nothing; beyond the others it goes on. */
export interface Ends {
  left: boolean;
  right: boolean;
  top: boolean;
  bottom: boolean;
}

export const WHOLE: Ends = { left: true, right: true, top: true, bottom: true };
const PART: Ends = { left: false, right: false, top: false, bottom: false };

/** All outlines of a mask. Where it goes on beyond the bitmap the frame is no outline. */
export function outlines(mask: Bitmap, ends: Ends = PART): Line[] {
  const stride = mask.width + 1;
  return chains(edgesOf(mask, ends)).map((chain) => smoothed(chain, stride));
}

function edgesOf({ width, height, data }: Bitmap, ends: Ends): Edge[] {
  const edges: Edge[] = [];
  const stride = width + 1;
  const beyond = (isEnd: boolean) => (isEnd ? false : null);
  /** Whether a pixel is inside; null where that is not known. */
  const at = (x: number, y: number): boolean | null => {
    if (x < 0) return beyond(ends.left);
    if (x >= width) return beyond(ends.right);
    if (y < 0) return beyond(ends.top);
    if (y >= height) return beyond(ends.bottom);
    return data[y * width + x] !== 0;
  };
  const isEdge = (a: boolean | null, b: boolean | null) => a !== null && b !== null && a !== b;
  for (let y = 0; y <= height; y++) {
    for (let x = 0; x <= width; x++) {
      const [inside, corner] = [at(x, y), y * stride + x];
      if (x < width && isEdge(inside, at(x, y - 1))) edges.push(directed(corner, corner + 1, inside!));
      if (y < height && isEdge(inside, at(x - 1, y))) edges.push(directed(corner + stride, corner, inside!));
    }
  }
  return edges;
}

function directed(from: number, to: number, isForward: boolean): Edge {
  return isForward ? { from, to } : { from: to, to: from };
}

/** Corners in the order in which edges lead from one to the next; lines that end at the frame come first. */
function chains(edges: Edge[]): number[][] {
  const next = new Map<number, number[]>();
  const arrivals = new Map<number, number>();
  for (const { from, to } of edges) {
    next.set(from, [...(next.get(from) ?? []), to]);
    arrivals.set(to, (arrivals.get(to) ?? 0) + 1);
  }
  const openEnds = [...next.keys()].filter((corner) => next.get(corner)!.length > (arrivals.get(corner) ?? 0));
  const found = openEnds.map((start) => follow(start, next));
  for (const start of next.keys()) while (next.get(start)!.length > 0) found.push(follow(start, next));
  return found;
}

/** Take edges out one after the other, until there is none or the line is closed. */
function follow(start: number, next: Map<number, number[]>): number[] {
  const chain = [start];
  let corner = next.get(start)?.pop();
  while (corner !== undefined) {
    chain.push(corner);
    corner = corner === start ? undefined : next.get(corner)?.pop();
  }
  return chain;
}

/** Through the middles of the edges: corners of pixels are cut, and slanted borders look slanted. */
function smoothed(chain: number[], stride: number): Line {
  const points = chain.map((corner) => [corner % stride, Math.floor(corner / stride)] as const);
  const middles = points.slice(1).map(([x, y], i) => [(x + points[i]![0]) / 2, (y + points[i]![1]) / 2] as const);
  const isClosed = chain[0] === chain.at(-1);
  const line = isClosed ? [...middles, middles[0]!] : [points[0]!, ...middles, points.at(-1)!];
  return line.flat();
}

/** A tile with the first column of its right and the first row of its lower neighbour, so that lines go on over seams. */
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
