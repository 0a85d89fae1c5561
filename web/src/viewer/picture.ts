/** A picture, or one slice of a volume, drawn on a canvas from tiles. */

import type { Layer, View } from "../api";
import { type Levels, greyTable, overlayTable, shiftedLevels } from "./colours";
import { type Ends, type Line, outlines, withSeams } from "./contours";
import { type Opened, type Painter, type PainterEvents, type Shown, atFirst, rangeOf } from "./layers";
import { followPointer } from "./pointer";
import { Stretches } from "./stretches";
import { type Outlined, pathOf, sharpen, strokeOutline, writeSides } from "./strokes";
import { type LoadedTile, TileCache, type TilePlace, asBitmap, drawnAs } from "./tilecache";
import {
  type Camera,
  type Picture,
  type Place,
  type Size,
  type Tile,
  fit,
  levelFor,
  placeOf,
  tilesInView,
  zoomAt,
} from "./tiles";

const OVERLAY = overlayTable();

/** Columns and rows of what is shown. */
export function pictureSize({ plane }: View): Picture {
  return { width: plane.columns, height: plane.rows, aspect: plane.aspect };
}

export class PicturePainter implements Painter {
  private readonly cache: TileCache;
  private readonly size: Picture;
  private readonly watcher: ResizeObserver;
  private readonly unfollow: () => void;
  private readonly stretches: Stretches;
  private readonly lines = new WeakMap<LoadedTile, { complete: boolean; lines: Line[] }>();
  private camera: Camera | null = null;
  private shown: Shown;
  private waiting = 0;
  private ratio = 1;
  /** Whether all of it was drawn once, at some level. */
  private isWhole = false;

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
    this.stretches = new Stretches(opened.view, () => this.redraw());
    this.watcher = new ResizeObserver(() => this.resized());
    this.watcher.observe(canvas);
    this.unfollow = isStill
      ? () => {}
      : followPointer(canvas, {
          onDrag: (x, y) => this.move((camera) => ({ ...camera, x: camera.x + x, y: camera.y + y })),
          onZoom: (factor, x, y) => this.move((camera) => zoomAt(camera, factor, x, y)),
          onLevels: (x, y) => events.onChange({ levels: shiftedLevels(this.shown.levels, x, y, rangeOf(opened.view)) }),
          onScroll: (steps) => this.scroll(steps),
          scrolls: opened.view.dimensions === 3,
        });
    events.onState("loading");
  }

  show(shown: Shown): void {
    this.shown = shown;
    this.stretches.want(shown.levels);
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
    this.stretches.stop();
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
    this.ratio = sharpen(this.canvas);
    const context = this.canvas.getContext("2d")!;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.drawLayers(context, this.camera, screen);
    writeSides(context, this.opened.view.plane.letters, this.frame(this.camera, screen));
    if (this.cache.coming === 0) this.isWhole = true;
    if (this.isWhole) this.events.onState(this.cache.coming === 0 ? "ready" : "refining");
  }

  /** The part of the screen that the picture fills. */
  private frame(camera: Camera, screen: Size): Place {
    const { width, height } = this.size;
    const [left, top, wide, tall] = placeOf(camera, this.size, { x: 0, y: 0, width, height }, this.ratio);
    const [first, above] = [Math.max(left, 0), Math.max(top, 0)];
    return [first, above, Math.min(left + wide, screen.width) - first, Math.min(top + tall, screen.height) - above];
  }

  private drawLayers(context: CanvasRenderingContext2D, camera: Camera, screen: Size): void {
    const { view } = this.opened;
    const level = levelFor(camera.scale * Math.max(1, this.size.aspect) * this.ratio, view.levels);
    const tiles = tilesInView(camera, screen, this.size, level, view.tile);
    const has = (layer: Layer) => view.layers.includes(layer);
    context.imageSmoothingEnabled = camera.scale < 1;
    if (has("image")) this.drawTiles(context, camera, tiles, "image");
    if (has("probabilities") && this.shown.overlay) {
      context.globalAlpha = this.shown.opacity;
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
      const drawn = layer === "image" ? this.imageDrawing(tile) : this.overlayDrawing(tile);
      if (drawn) this.place(context, camera, tile, drawn);
      else this.placeCoarser(context, camera, tile, layer);
    }
  }

  private overlayDrawing(tile: Tile): HTMLCanvasElement | null {
    const loaded = this.cache.get("probabilities", this.placeOf(tile));
    return loaded && drawnAs(loaded, "overlay", asOverlay);
  }

  /** As it was stretched for these levels; until that has come, as it was before. */
  private imageDrawing(tile: Tile): HTMLCanvasElement | null {
    const { now, before } = this.stretches;
    const fitting = this.cache.get("image", this.placeOf(tile), this.stretches.asked(now));
    if (fitting) return this.windowed(fitting, now);
    const earlier = this.cache.peek("image", this.placeOf(tile), this.stretches.asked(before));
    return earlier && this.windowed(earlier, before);
  }

  private placeOf({ level, row, column }: Tile): TilePlace {
    return { slice: this.shown.slice, level, row, column };
  }

  private windowed(tile: LoadedTile, made: Levels): HTMLCanvasElement {
    const { levels } = this.shown;
    const table = greyTable(levels, made);
    return drawnAs(tile, `${levels.low}–${levels.high}`, (from, to) => asWindowed(from, to, table));
  }

  private place(context: CanvasRenderingContext2D, camera: Camera, tile: Tile, drawn: HTMLCanvasElement): void {
    const step = 2 ** tile.level;
    const part = { x: tile.x, y: tile.y, width: step * drawn.width, height: step * drawn.height };
    context.drawImage(drawn, ...placeOf(camera, this.size, part, this.ratio));
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
      const drawn = this.coarseDrawing(layer, { slice: this.shown.slice, level: tile.level + up, row, column });
      if (!drawn) continue;
      const [left, top] = [(tile.column - (column << up)) * part, (tile.row - (row << up)) * part];
      const [width, height] = [Math.min(part, drawn.width - left), Math.min(part, drawn.height - top)];
      const step = 2 ** (tile.level + up);
      if (width <= 0 || height <= 0) return;
      const covered = { x: tile.x, y: tile.y, width: step * width, height: step * height };
      context.drawImage(drawn, left, top, width, height, ...placeOf(camera, this.size, covered, this.ratio));
      return;
    }
  }

  private coarseDrawing(layer: "image" | "probabilities", place: TilePlace): HTMLCanvasElement | null {
    const { now } = this.stretches;
    const coarse = this.cache.peek(layer, place, layer === "image" ? this.stretches.asked(now) : null);
    if (!coarse) return null;
    return layer === "image" ? this.windowed(coarse, now) : drawnAs(coarse, "overlay", asOverlay);
  }

  private drawOutlines(context: CanvasRenderingContext2D, camera: Camera, tiles: Tile[], kind: Outlined): void {
    const [sharp, gaps, coarse] = [new Path2D(), new Path2D(), new Map<string, Tile>()];
    for (const tile of tiles) {
      const loaded = this.cache.get(kind, this.placeOf(tile));
      const standIn = loaded ? null : this.coarserOf(kind, tile);
      if (loaded) sharp.addPath(this.outlineOf(kind, tile, loaded, camera));
      if (!standIn) continue;
      gaps.rect(...placeOf(camera, this.size, this.extentOf(tile), this.ratio));
      coarse.set(`${standIn.level}/${standIn.row}/${standIn.column}`, standIn);
    }
    const stroke = (path: Path2D) => strokeOutline(context, path, kind, this.isStill ? 1 : undefined);
    stroke(sharp);
    if (coarse.size === 0) return;
    context.save();
    context.clip(gaps); // coarser lines only where the fine ones are on their way
    for (const tile of coarse.values())
      stroke(this.outlineOf(kind, tile, this.cache.peek(kind, this.placeOf(tile))!, camera));
    context.restore();
  }

  /** The finest coarser tile that is there and covers a tile. */
  private coarserOf(kind: Outlined, tile: Tile): Tile | null {
    for (let level = tile.level + 1; level < this.opened.view.levels; level++) {
      const [row, column] = [tile.row >> (level - tile.level), tile.column >> (level - tile.level)];
      const step = this.opened.view.tile * 2 ** level;
      const found = { level, row, column, x: column * step, y: row * step };
      if (this.cache.peek(kind, this.placeOf(found))) return found;
    }
    return null;
  }

  private extentOf(tile: Tile): Size & { x: number; y: number } {
    const step = this.opened.view.tile * 2 ** tile.level;
    const [width, height] = [Math.min(step, this.size.width - tile.x), Math.min(step, this.size.height - tile.y)];
    return { x: tile.x, y: tile.y, width, height };
  }

  private outlineOf(kind: Outlined, tile: Tile, loaded: LoadedTile, camera: Camera): Path2D {
    const [across, down] = [camera.scale, camera.scale * this.size.aspect];
    const [left, top, step] = [camera.x + across * tile.x, camera.y + down * tile.y, 2 ** tile.level];
    const toScreen = (x: number, y: number): [number, number] => [left + across * step * x, top + down * step * y];
    return pathOf(this.linesOf(kind, tile, loaded), toScreen);
  }

  private linesOf(kind: Outlined, tile: Tile, loaded: LoadedTile): Line[] {
    const known = this.lines.get(loaded);
    if (known?.complete) return known.lines;
    const right = this.neighbour(kind, tile, 0, 1);
    const below = this.neighbour(kind, tile, 1, 0);
    const bitmap = withSeams(asBitmap(loaded), right && asBitmap(right), below && asBitmap(below));
    const made = { complete: this.seamsKnown(tile, right, below), lines: outlines(bitmap, this.endsOf(tile)) };
    this.lines.set(loaded, made);
    return made.lines;
  }

  /** The sides of a tile that are those of the picture. */
  private endsOf(tile: Tile): Ends {
    const step = this.opened.view.tile * 2 ** tile.level;
    const [right, bottom] = [tile.x + step >= this.size.width, tile.y + step >= this.size.height];
    return { left: tile.column === 0, top: tile.row === 0, right, bottom };
  }

  private neighbour(kind: Outlined, { level, row, column }: Tile, down: number, aside: number): LoadedTile | null {
    return this.cache.peek(kind, { slice: this.shown.slice, level, row: row + down, column: column + aside });
  }

  private seamsKnown(tile: Tile, right: LoadedTile | null, below: LoadedTile | null): boolean {
    const ends = this.endsOf(tile);
    return (right !== null || ends.right) && (below !== null || ends.bottom);
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
