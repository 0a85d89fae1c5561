/** Tiles as they came, and what was made of them; the ones least in use go first. */

import { type Layer, tileAddress } from "../api";
import type { Levels } from "./colours";
import type { Bitmap } from "./contours";

export interface LoadedTile {
  pixels: ImageData;
  /** Drawings made of the pixels, with what they were made for. */
  drawn: { key: string; canvas: HTMLCanvasElement } | null;
}

export interface TilePlace {
  slice: number;
  level: number;
  row: number;
  column: number;
}

const CAPACITY = 600;
const TOO_MANY = 429;
const PAUSE_MS = 1000;

export class TileCache {
  private readonly tiles = new Map<string, LoadedTile | "coming" | "failed">();
  private readonly stopping = new AbortController();
  /** Tiles that are on their way. */
  coming = 0;

  constructor(
    private readonly number: number,
    private readonly onChange: () => void,
    private readonly onFailure: (text: string) => void,
  ) {}

  /** The tile, if it is there; otherwise it is asked for. */
  get(layer: Layer, place: TilePlace, stretch: Levels | null = null): LoadedTile | null {
    const address = tileAddress(this.number, layer, place, stretch);
    const known = this.tiles.get(address);
    if (known === undefined) void this.fetch(address);
    return typeof known === "object" ? known : null;
  }

  /** The tile, only if it is there. */
  peek(layer: Layer, place: TilePlace, stretch: Levels | null = null): LoadedTile | null {
    const known = this.tiles.get(tileAddress(this.number, layer, place, stretch));
    return typeof known === "object" ? known : null;
  }

  stop(): void {
    this.stopping.abort();
    this.tiles.clear();
  }

  private async fetch(address: string): Promise<void> {
    this.tiles.set(address, "coming");
    this.coming += 1;
    try {
      this.keep(address, await decode(await this.download(address)));
    } catch (error) {
      this.fail(address, error as Error);
    }
    this.coming -= 1;
    if (!this.stopping.signal.aborted) this.onChange();
  }

  /** What the server refuses stays away; what did not arrive is asked for again after a pause. */
  private fail(address: string, error: Error): void {
    this.tiles.set(address, "failed");
    if (this.stopping.signal.aborted) return;
    if (error instanceof TypeError) setTimeout(() => this.forget(address), PAUSE_MS);
    else this.onFailure(error.message);
  }

  private forget(address: string): void {
    this.tiles.delete(address);
    if (!this.stopping.signal.aborted) this.onChange();
  }

  private async download(address: string): Promise<Blob> {
    const response = await fetch(address, { signal: this.stopping.signal, credentials: "same-origin" });
    if (response.status === TOO_MANY) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      return this.download(address);
    }
    if (!response.ok) throw new Error(`A tile could not be read (${response.status}).`);
    return response.blob();
  }

  private keep(address: string, pixels: ImageData): void {
    this.tiles.delete(address);
    this.tiles.set(address, { pixels, drawn: null });
    for (const oldest of this.tiles.keys()) {
      if (this.tiles.size <= CAPACITY) break;
      this.tiles.delete(oldest);
    }
  }
}

async function decode(blob: Blob): Promise<ImageData> {
  const bitmap = await createImageBitmap(blob, { colorSpaceConversion: "none", premultiplyAlpha: "none" });
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  return context.getImageData(0, 0, canvas.width, canvas.height);
}

/** A mask of a tile: what is brighter than half is inside. */
export function asBitmap({ pixels }: LoadedTile): Bitmap {
  const data = Uint8Array.from({ length: pixels.width * pixels.height }, (_, i) => (pixels.data[4 * i]! > 127 ? 1 : 0));
  return { width: pixels.width, height: pixels.height, data };
}

/** A drawing of a tile; made again only if `key` has changed. */
export function drawnAs(
  tile: LoadedTile,
  key: string,
  recolour: (from: Uint8ClampedArray, to: Uint8ClampedArray) => void,
): HTMLCanvasElement {
  if (tile.drawn?.key === key) return tile.drawn.canvas;
  const canvas = tile.drawn?.canvas ?? document.createElement("canvas");
  canvas.width = tile.pixels.width;
  canvas.height = tile.pixels.height;
  const image = new ImageData(canvas.width, canvas.height);
  recolour(tile.pixels.data, image.data);
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  tile.drawn = { key, canvas };
  return canvas;
}
