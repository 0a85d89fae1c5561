/** Mouse, pen and fingers on a canvas: drag, zoom by the wheel, window and level with the other button. */

export interface PointerEvents {
  onDrag(x: number, y: number): void;
  onZoom(factor: number, x: number, y: number): void;
  onLevels(x: number, y: number): void;
  onScroll(steps: number): void;
  /** Whether the wheel scrolls slices; it zooms then with Ctrl. */
  scrolls: boolean;
}

/** Begin to follow; the result ends it. */
export function followPointer(canvas: HTMLCanvasElement, events: PointerEvents): () => void {
  const stopping = new AbortController();
  const { signal } = stopping;
  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId), { signal });
  canvas.addEventListener("pointermove", (event) => dragged(event, events), { signal });
  canvas.addEventListener("contextmenu", (event) => event.preventDefault(), { signal });
  canvas.addEventListener("wheel", (event) => wheeled(event, events), { signal, passive: false });
  return () => stopping.abort();
}

const SECOND_BUTTON = 2;

function dragged(event: PointerEvent, events: PointerEvents): void {
  if (event.buttons === 0) return;
  if (event.buttons & SECOND_BUTTON) events.onLevels(event.movementX, event.movementY);
  else events.onDrag(event.movementX, event.movementY);
}

function wheeled(event: WheelEvent, events: PointerEvents): void {
  event.preventDefault();
  if (events.scrolls && !event.ctrlKey) events.onScroll(event.deltaY > 0 ? -1 : 1);
  else events.onZoom(Math.exp(-event.deltaY / 500), event.offsetX, event.offsetY);
}
