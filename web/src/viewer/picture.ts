/** A picture, or one slice of a volume, drawn on a canvas from tiles. */

import type { Layer, View } from "../api";
import { type Levels, greyTable, overlayTable } from "./colours";
import { type Line, outlines, withSeams } from "./contours";
import { FULL_LEVELS, type Opened, type Painter, type PainterEvents, type Shown, atFirst } from "./layers";
import { followPointer } from "./pointer";
import { type Outlined, pathOf, sharpen, strokeOutline } from "./strokes";
import { type LoadedTile, TileCache, asBitmap, drawnAs } from "./tilecache";
import { type Camera, type Size, type Tile, fit, levelFor, tilesInView, zoomAt } from "./tiles";

const OVERLAY = overlayTable();

/** Rows and columns of what is shown. */
export function pictureSize(view: View): Size {
  const [height = 1, width = 1] = view.shape.slice(-2);
  return { width, height };
}

export class PicturePainter implements Painter {
  private readonly cache: TileCache;
  private readonly size: Size;
  private readonly watcher: ResizeObserver;
  private readonly unfollow: () => void;
  private readonly lines = new WeakMap<LoadedTile, { complete: boolean; lines: Line[] }>();
  private camera: Camera | null = null;
  private shown: Shown;
  private waiting = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly opened: Opened,
    private readonly events: PainterEvents,
    private readonly isStill = false,
  ) {
    this.size = pictureSize(opened.view);
    this.shown = atFirst(opened.view);
    this.cache = new TileCache(
      opened.number,
      () => this.redraw(),
      (text) => events.onState("failed", text),
    );
    this.watcher = new ResizeObserver(() => this.resized());
    this.watcher.observe(canvas);
    this.unfollow = isStill
      ? () => {}
      : followPointer(canvas, {
          onDrag: (x, y) => this.move((camera) => ({ ...camera, x: camera.x + x, y: camera.y + y })),
          onZoom: (factor, x, y) => this.move((camera) => zoomAt(camera, factor, x, y)),
          onLevels: (x, y) => events.onChange({ levels: shiftedLevels(this.shown.levels, x, y) }),
          onScroll: (steps) => this.scroll(steps),
          scrolls: opened.view.dimensions === 3,
        });
    events.onState("loading");
  }

  show(shown: Shown): void {
    this.shown = shown;
    this.redraw();
  }

  zoom(factor: number): void {
    this.move((camera) => zoomAt(camera, factor, this.canvas.clientWidth / 2, this.canvas.clientHeight / 2));
  }

  fit(): void {
    this.camera = null;
    this.redraw();
  }

  stop(): void {
    cancelAnimationFrame(this.waiting);
    this.watcher.disconnect();
    this.unfollow();
    this.cache.stop();
  }

  private scroll(steps: number): void {
    this.events.onChange({ slice: this.shown.slice + steps });
  }

  private resized(): void {
    if (this.camera && !this.wasMoved) this.camera = null;
    this.redraw();
  }

  private wasMoved = false;

  private move(change: (camera: Camera) => Camera): void {
    if (!this.camera) return;
    this.camera = change(this.camera);
    this.wasMoved = true;
    this.redraw();
  }

  private redraw(): void {
    cancelAnimationFrame(this.waiting);
    this.waiting = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    const screen = { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
    if (screen.width === 0 || screen.height === 0) return;
    if (!this.camera) {
      this.camera = fit(this.size, screen);
      this.wasMoved = false;
    }
    const ratio = sharpen(this.canvas);
    const context = this.canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, screen.width, screen.height);
    this.drawLayers(context, this.camera, screen, ratio);
    if (this.cache.coming === 0) this.events.onState("ready");
  }

  private drawLayers(context: CanvasRenderingContext2D, camera: Camera, screen: Size, ratio: number): void {
    const { view } = this.opened;
    const level = levelFor(camera.scale * ratio, view.levels);
    const tiles = tilesInView(camera, screen, this.size, level, view.tile);
    const has = (layer: Layer) => view.layers.includes(layer);
    context.imageSmoothingEnabled = camera.scale < 1;
    if (has("image")) this.drawTiles(context, camera, tiles, "image");
    if (has("probabilities") && this.shown.overlay) {
      context.globalAlpha = has("image") ? this.shown.opacity : 1;
      this.drawTiles(context, camera, tiles, "probabilities");
      context.globalAlpha = 1;
    }
    if (has("mask") && this.shown.mask) this.drawOutlines(context, camera, tiles, "mask");
    if (has("truth") && this.shown.truth) this.drawOutlines(context, camera, tiles, "truth");
  }

  private drawTiles(
    context: CanvasRenderingContext2D,
    camera: Camera,
    tiles: Tile[],
    layer: "image" | "probabilities",
  ): void {
    for (const tile of tiles) {
      const drawn = this.drawing(layer, tile) ?? null;
      if (drawn) this.place(context, camera, tile, drawn);
      else this.placeCoarser(context, camera, tile, layer);
    }
  }

  private drawing(layer: "image" | "probabilities", tile: Tile): HTMLCanvasElement | null {
    const loaded = this.cache.get(layer, { ...tile, slice: this.shown.slice });
    return loaded && this.coloured(layer, loaded);
  }

  private coloured(layer: "image" | "probabilities", tile: LoadedTile): HTMLCanvasElement {
    if (layer === "probabilities") return drawnAs(tile, "overlay", asOverlay);
    const { levels } = this.shown;
    const table = greyTable(levels);
    return drawnAs(tile, `${levels.low}–${levels.high}`, (from, to) => asWindowed(from, to, table));
  }

  private place(context: CanvasRenderingContext2D, camera: Camera, tile: Tile, drawn: HTMLCanvasElement): void {
    const scale = camera.scale * 2 ** tile.level;
    context.drawImage(
      drawn,
      camera.x + camera.scale * tile.x,
      camera.y + camera.scale * tile.y,
      scale * drawn.width,
      scale * drawn.height,
    );
  }

  /** While a tile is on its way, a part of a coarser one stands in its place. */
  private placeCoarser(
    context: CanvasRenderingContext2D,
    camera: Camera,
    tile: Tile,
    layer: "image" | "probabilities",
  ): void {
    const side = this.opened.view.tile;
    for (let up = 1; tile.level + up < this.opened.view.levels; up++) {
      const [row, column, part] = [tile.row >> up, tile.column >> up, side / 2 ** up];
      const coarse = this.cache.peek(layer, { slice: this.shown.slice, level: tile.level + up, row, column });
      if (!coarse) continue;
      const [left, top] = [(tile.column - (column << up)) * part, (tile.row - (row << up)) * part];
      const drawn = this.coloured(layer, coarse);
      const [width, height] = [Math.min(part, drawn.width - left), Math.min(part, drawn.height - top)];
      const scale = camera.scale * 2 ** (tile.level + up);
      if (width <= 0 || height <= 0) return;
      context.drawImage(
        drawn,
        left,
        top,
        width,
        height,
        camera.x + camera.scale * tile.x,
        camera.y + camera.scale * tile.y,
        scale * width,
        scale * height,
      );
      return;
    }
  }

  private drawOutlines(context: CanvasRenderingContext2D, camera: Camera, tiles: Tile[], kind: Outlined): void {
    const all = new Path2D();
    for (const tile of tiles) {
      const scale = camera.scale * 2 ** tile.level;
      const [left, top] = [camera.x + camera.scale * tile.x, camera.y + camera.scale * tile.y];
      all.addPath(pathOf(this.linesOf(kind, tile), (x, y) => [left + scale * x, top + scale * y]));
    }
    strokeOutline(context, all, kind, this.isStill ? 1 : undefined);
  }

  private linesOf(kind: Outlined, tile: Tile): Line[] {
    const { slice } = this.shown;
    const { level, row, column } = tile;
    const loaded = this.cache.get(kind, { slice, level, row, column });
    if (!loaded) return [];
    const known = this.lines.get(loaded);
    if (known?.complete) return known.lines;
    const right = this.neighbour(kind, tile, 0, 1);
    const below = this.neighbour(kind, tile, 1, 0);
    const bitmap = withSeams(asBitmap(loaded), right && asBitmap(right), below && asBitmap(below));
    const made = { complete: this.seamsKnown(tile, right, below), lines: outlines(bitmap) };
    this.lines.set(loaded, made);
    return made.lines;
  }

  private neighbour(kind: Outlined, { level, row, column }: Tile, down: number, aside: number): LoadedTile | null {
    return this.cache.peek(kind, { slice: this.shown.slice, level, row: row + down, column: column + aside });
  }

  private seamsKnown(tile: Tile, right: LoadedTile | null, below: LoadedTile | null): boolean {
    const step = this.opened.view.tile * 2 ** tile.level;
    return (
      (right !== null || tile.x + step >= this.size.width) && (below !== null || tile.y + step >= this.size.height)
    );
  }
}

function asOverlay(from: Uint8ClampedArray, to: Uint8ClampedArray): void {
  for (let i = 0; i < from.length; i += 4) to.set(OVERLAY.subarray(4 * from[i]!, 4 * from[i]! + 4), i);
}

function asWindowed(from: Uint8ClampedArray, to: Uint8ClampedArray, table: Uint8ClampedArray): void {
  for (let i = 0; i < from.length; i += 4) {
    for (let channel = 0; channel < 3; channel++) to[i + channel] = table[from[i + channel]!]!;
    to[i + 3] = from[i + 3]!;
  }
}

/** Levels after a drag with the other mouse button: sideways is the level, up and down the window. */
export function shiftedLevels({ low, high }: Levels, x: number, y: number): Levels {
  const span = Math.min(Math.max(high - low + y, 4), 510);
  const middle = Math.min(Math.max((low + high) / 2 + x / 2, FULL_LEVELS.low), FULL_LEVELS.high);
  return { low: Math.round(middle - span / 2), high: Math.round(middle + span / 2) };
}
