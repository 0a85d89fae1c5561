/** Which tiles of a pyramid show a picture at a scale, and where they go. */

export interface Camera {
  /** Screen pixels for the width of each pixel of the picture. */
  scale: number;
  /** Where the left upper corner of the picture is on the screen. */
  x: number;
  y: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Columns and rows of a picture, and the height of a pixel for its width. */
export interface Picture extends Size {
  aspect: number;
}

/** Left, top, width and height on the screen. */
export type Place = [left: number, top: number, width: number, height: number];

export interface Tile {
  level: number;
  row: number;
  column: number;
  /** Place in the picture at full size. */
  x: number;
  y: number;
}

/** The camera that shows all of a picture, in the middle. */
export function fit({ width, height, aspect }: Picture, screen: Size, margin = 12): Camera {
  const tall = height * aspect;
  const scale = Math.max(Math.min((screen.width - 2 * margin) / width, (screen.height - 2 * margin) / tall), 1e-3);
  return { scale, x: (screen.width - scale * width) / 2, y: (screen.height - scale * tall) / 2 };
}

/** Zoom so that the point under the pointer stays under it. */
export function zoomAt(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = Math.min(Math.max(camera.scale * factor, 0.01), 64);
  const applied = scale / camera.scale;
  return { scale, x: x - applied * (x - camera.x), y: y - applied * (y - camera.y) };
}

/** The coarsest level that has at least one pixel for each pixel of the screen. */
export function levelFor(scale: number, levels: number): number {
  const wanted = Math.floor(Math.log2(1 / scale) + 1e-9);
  return Math.min(Math.max(wanted, 0), levels - 1);
}

/** Tiles of a level that the screen shows some of. */
export function tilesInView(camera: Camera, screen: Size, picture: Picture, level: number, side: number): Tile[] {
  const step = side * 2 ** level; // of a tile, in pixels of the picture
  const range = (from: number, length: number, whole: number) => {
    const first = Math.max(0, Math.floor(from / step));
    const last = Math.min(Math.ceil(whole / step), Math.ceil((from + length) / step));
    return Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
  };
  const down = camera.scale * picture.aspect;
  const rows = range(-camera.y / down, screen.height / down, picture.height);
  const columns = range(-camera.x / camera.scale, screen.width / camera.scale, picture.width);
  return rows.flatMap((row) => columns.map((column) => ({ level, row, column, x: column * step, y: row * step })));
}

/**
 * Where a part of a picture goes on the screen, with edges on pixels of the device.
 *
 * Parts that touch have the same edge then; between them nothing shines through.
 */
export function placeOf(camera: Camera, { aspect }: Picture, part: Size & { x: number; y: number }, ratio: number): Place {
  const snapped = (value: number) => Math.round(value * ratio) / ratio;
  const across = (x: number) => snapped(camera.x + camera.scale * x);
  const down = (y: number) => snapped(camera.y + camera.scale * aspect * y);
  const [left, top] = [across(part.x), down(part.y)];
  return [left, top, across(part.x + part.width) - left, down(part.y + part.height) - top];
}
