/** A volume in NiiVue, with outlines drawn over it. NiiVue is large: this module is loaded only for volumes. */

import { DRAG_MODE, MULTIPLANAR_TYPE, NVImage, Niivue, SHOW_RENDER, SLICE_TYPE } from "@niivue/niivue";
import { type Layer, volumeAddress } from "../api";
import { type Levels, overlayTable } from "./colours";
import { WHOLE, outlines } from "./contours";
import { type Opened, type Painter, type PainterEvents, type Shown, atFirst } from "./layers";
import { type Axes, PLANES, type Plane, axesOf, planeOf, sidesOf, sliceDirection, turned } from "./orientation";
import { type Outlined, pathOf, sharpen, strokeOutline, writeSides } from "./strokes";
import type { Place } from "./tiles";

const OVERLAY_NAME = "segtrust";
const ALONE_NAME = "segtrust-alone";
const CROSSHAIR_PIXELS = 0.2;
export class VolumePainter implements Painter {
  private readonly nv: Niivue;
  private readonly masks = new Map<Outlined, NVImage>();
  private readonly watcher: ResizeObserver;
  private shown: Shown;
  private ready = false;
  private stopped = false;
  private axes: Axes = axesOf([], []);

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly over: HTMLCanvasElement,
    private readonly opened: Opened,
    private readonly events: PainterEvents,
  ) {
    this.shown = atFirst(opened.view);
    this.nv = newNiivue(this.isInBody);
    this.watcher = new ResizeObserver(() => this.drawOutlines());
    this.watcher.observe(over);
    events.onState("loading");
    void this.load();
  }

  show(shown: Shown): void {
    const before = this.shown;
    this.shown = shown;
    if (this.ready) this.apply(before);
  }

  zoom(factor: number): void {
    const [x = 0, y = 0, z = 0, zoom = 1] = this.nv.scene.pan2Dxyzmm;
    this.nv.setPan2Dxyzmm([x, y, z, Math.min(Math.max(zoom * factor, 0.2), 20)]);
  }

  fit(): void {
    this.nv.setPan2Dxyzmm([0, 0, 0, 1]);
  }

  stop(): void {
    this.stopped = true;
    this.watcher.disconnect();
    this.nv.cleanup();
    // A browser allows few WebGL contexts at a time; this one is given back at once.
    this.nv.gl?.getExtension("WEBGL_lose_context")?.loseContext();
  }

  private get isInBody(): boolean {
    return this.opened.view.plane.letters !== "";
  }

  private has(layer: Layer): boolean {
    return this.opened.view.layers.includes(layer);
  }

  private async load(): Promise<void> {
    try {
      await this.nv.attachToCanvas(this.canvas);
      await this.nv.loadVolumes(this.visibleVolumes());
      await Promise.all(
        (["mask", "truth"] as const).filter((kind) => this.has(kind)).map((kind) => this.loadMask(kind)),
      );
      if (!this.stopped) this.begin();
    } catch (error) {
      if (!this.stopped) this.events.onState("failed", (error as Error).message);
    }
  }

  private visibleVolumes() {
    const image = { url: volumeAddress(this.opened.number, "image"), name: "image.nii", colormap: "gray" };
    const { opacity } = this.shown;
    const overlay = {
      url: volumeAddress(this.opened.number, "probabilities"),
      name: "probabilities.nii",
      colormap: this.has("image") ? OVERLAY_NAME : ALONE_NAME,
      opacity,
      cal_min: 0,
      cal_max: 255,
    };
    return [...(this.has("image") ? [image] : []), ...(this.has("probabilities") ? [overlay] : [])];
  }

  /** Masks are read by NiiVue, but not drawn by it: its outlines would also run around the probabilities. */
  private async loadMask(kind: Outlined): Promise<void> {
    this.masks.set(
      kind,
      await NVImage.loadFromUrl({ url: volumeAddress(this.opened.number, kind), name: `${kind}.nii` }),
    );
  }

  private begin(): void {
    this.ready = true;
    this.nv.onLocationChange = () => this.tellSlice();
    this.nv.onIntensityChange = () => this.events.onChange({ levels: this.levels() });
    this.followDrawing();
    this.readAxes();
    this.apply(null);
    this.events.onState("ready");
  }

  /** NiiVue draws when it wants to (drag, zoom, resize); the outlines are drawn again each time. */
  private followDrawing(): void {
    const draw = this.nv.drawScene.bind(this.nv);
    this.nv.drawScene = () => {
      const result = draw();
      this.drawOutlines();
      return result;
    };
  }

  private readAxes(): void {
    const image = this.nv.volumes[0];
    if (image) this.axes = axesOf(image.permRAS ?? [], image.hdr!.dims.slice(1, 4));
  }

  private apply(before: Shown | null): void {
    const { shown, nv } = this;
    if (before?.multiplanar !== shown.multiplanar) this.setPlanes(shown.multiplanar);
    if (before?.slice !== shown.slice) this.goTo(shown.slice);
    if (before?.levels !== shown.levels) this.setLevels();
    const overlay = nv.volumes.length - 1;
    if (overlay >= 0 && this.has("probabilities")) nv.setOpacity(overlay, this.overlayOpacity());
    nv.drawScene();
  }

  /** The crosshair says where the other planes are; over a single one it would only hide the picture. */
  private setPlanes(isThree: boolean): void {
    this.nv.opts.crosshairWidth = isThree ? CROSSHAIR_PIXELS : 0;
    this.nv.setSliceType(isThree ? SLICE_TYPE.MULTIPLANAR : this.slicePlane());
  }

  private overlayOpacity(): number {
    if (!this.shown.overlay) return 0;
    return this.shown.opacity;
  }

  /** The plane in which slices of the desk lie. */
  private slicePlane(): SLICE_TYPE {
    return [SLICE_TYPE.SAGITTAL, SLICE_TYPE.CORONAL, SLICE_TYPE.AXIAL][sliceDirection(this.axes)] ?? SLICE_TYPE.AXIAL;
  }

  private goTo(slice: number): void {
    const direction = sliceDirection(this.axes);
    const axis = this.axes[direction]!;
    if (slice !== this.slice()) this.nv.scene.crosshairPos[direction] = (turned(axis, slice) + 0.5) / axis.length;
  }

  /** The slice in the crosshair. */
  private slice(): number {
    const direction = sliceDirection(this.axes);
    return turned(this.axes[direction]!, this.index(direction));
  }

  /** Where the crosshair is along a direction of the room, in voxels. */
  private index(direction: number): number {
    const { length } = this.axes[direction]!;
    return Math.min(Math.max(Math.floor(this.nv.scene.crosshairPos[direction]! * length), 0), length - 1);
  }

  private tellSlice(): void {
    const slice = this.slice();
    if (slice !== this.shown.slice) this.events.onChange({ slice });
  }

  private levels(): Levels {
    const { cal_min = this.shown.levels.low, cal_max = this.shown.levels.high } = this.nv.volumes[0] ?? {};
    return { low: cal_min, high: cal_max };
  }

  private setLevels(): void {
    const image = this.nv.volumes[0];
    if (!image || !this.has("image")) return;
    const { low, high } = this.shown.levels;
    [image.cal_min, image.cal_max] = [low, high > low ? high : low + 1];
    this.nv.updateGLVolume();
  }

  private drawOutlines(): void {
    const ratio = sharpen(this.over);
    const context = this.over.getContext("2d")!;
    if (!this.ready || this.stopped) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const [kind, mask] of this.masks) if (this.shown[kind]) this.drawOutline(context, kind, mask, ratio);
    if (this.isInBody) this.drawLetters(context, ratio);
  }

  private drawLetters(context: CanvasRenderingContext2D, ratio: number): void {
    for (const screen of this.nv.screenSlices) {
      const plane = PLANES[screen.axCorSag];
      if (!plane) continue;
      const place = this.placing(screen, plane, ratio);
      const corners = [place(0, 0), place(this.axes[plane[0]]!.length, this.axes[plane[1]]!.length)];
      writeSides(context, sidesOf(plane), common(corners, clip(screen.leftTopWidthHeight, ratio)));
    }
  }

  private drawOutline(context: CanvasRenderingContext2D, kind: Outlined, mask: NVImage, ratio: number): void {
    for (const screen of this.nv.screenSlices) {
      const plane = PLANES[screen.axCorSag];
      if (!plane) continue;
      const bitmap = planeOf(mask.img!, this.axes, plane, this.index(plane[2]));
      const path = pathOf(outlines(bitmap, WHOLE), this.placing(screen, plane, ratio));
      context.save();
      context.beginPath();
      context.rect(...clip(screen.leftTopWidthHeight, ratio));
      context.clip();
      strokeOutline(context, path, kind);
      context.restore();
    }
  }

  /** From voxels of a plane to pixels of the page. */
  private placing(screen: ScreenSlice, [across, up]: Plane, ratio: number): (x: number, y: number) => [number, number] {
    const [left, top, width, height] = clip(screen.leftTopWidthHeight, ratio);
    const [firstX = 0, firstY = 0] = screen.leftTopMM;
    const [spanX = 1, spanY = 1] = screen.fovMM;
    const [begin, end] = [this.nv.frac2mm([0, 0, 0]), this.nv.frac2mm([1, 1, 1])];
    const mm = (direction: number, index: number) =>
      begin[direction]! + (index / this.axes[direction]!.length) * (end[direction]! - begin[direction]!);
    return (x, y) => [
      left + ((mm(across, x) - firstX) / spanX) * width,
      top + height - ((mm(up, y) - firstY) / spanY) * height,
    ];
  }
}

type ScreenSlice = Niivue["screenSlices"][number];

/** The part of a box that lies between two corners. */
function common(corners: [number, number][], [left, top, width, height]: Place): Place {
  const ends = (axis: 0 | 1) => corners.map((corner) => corner[axis]);
  const [first, above] = [Math.max(left, Math.min(...ends(0))), Math.max(top, Math.min(...ends(1)))];
  const [last, below] = [Math.min(left + width, Math.max(...ends(0))), Math.min(top + height, Math.max(...ends(1)))];
  return [first, above, last - first, below - above];
}

function clip([left = 0, top = 0, width = 0, height = 0]: number[], ratio: number): Place {
  return [left / ratio, top / ratio, width / ratio, height / ratio];
}

/** In a body the patient's right is on the left; a volume that lies nowhere is shown as it is. */
function newNiivue(isInBody: boolean): Niivue {
  const nv = new Niivue({
    backColor: [0, 0, 0, 1],
    crosshairColor: [0.6, 0.65, 0.7, 0.5],
    crosshairWidth: 0,
    crosshairWidthUnit: "percent",
    isColorbar: false,
    isOrientCube: false,
    isOrientationTextVisible: false, // its letters cannot be read on grey images
    isRadiologicalConvention: isInBody,
    sagittalNoseLeft: isInBody,
    dragAndDropEnabled: false,
    show3Dcrosshair: false,
    multiplanarShowRender: SHOW_RENDER.NEVER,
    multiplanarLayout: MULTIPLANAR_TYPE.GRID,
    multiplanarPadPixels: 6,
    dragMode: DRAG_MODE.contrast,
    isNearestInterpolation: true,
    viewModeHotKey: "",
    clipPlaneHotKey: "",
    cycleClipPlaneHotKey: "",
    loadingText: "",
    logLevel: "error",
  });
  nv.addColormap(OVERLAY_NAME, colormapOf(overlayTable()));
  nv.addColormap(ALONE_NAME, colormapOf(onBlack(overlayTable())));
  return nv;
}

/** NiiVue draws its first volume without transparency: what shines through is put into the colours. */
function onBlack(table: Uint8ClampedArray): Uint8ClampedArray {
  return table.map((value, i) => (i % 4 === 3 ? 255 : (value * table[i - (i % 4) + 3]!) / 255));
}

function colormapOf(table: Uint8ClampedArray) {
  const channel = (offset: number) => Array.from({ length: 256 }, (_, i) => table[4 * i + offset]!);
  return { R: channel(0), G: channel(1), B: channel(2), A: channel(3), I: Array.from({ length: 256 }, (_, i) => i) };
}
