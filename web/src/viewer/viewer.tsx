/** The picture of a case with all that can be set about it. */

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useCommands } from "../commands";
import { Loading } from "../parts/basics";
import { Controls, ZoomButtons } from "./controls";
import {
  type Opened,
  type Painter,
  type PainterEvents,
  type PictureState,
  type Shown,
  atFirst,
  changeBy,
  sliceCount,
} from "./layers";
import { OrientationNote } from "./note";
import { PicturePainter } from "./picture";

const ZOOM_STEP = 1.25;

export function Viewer({ opened }: { opened: Opened }) {
  const [shown, setShown] = useState(() => atFirst(opened.view));
  const [state, setState] = useState<{ name: PictureState; text?: string | undefined }>({ name: "loading" });
  const change = (part: Partial<Shown>) => setShown((before) => within({ ...before, ...part }, opened));
  const { canvas, over, painter, kind } = usePainter(opened, {
    onChange: change,
    onState: (name, text) => setState({ name, text }),
  });
  useEffect(() => painter.current?.show(shown), [shown, kind]);

  useCommands((command) => {
    const changed = changeBy(command, shown, opened.view);
    if (changed) return change(changed);
    if (command === "zoom-in") return painter.current?.zoom(ZOOM_STEP);
    if (command === "zoom-out") return painter.current?.zoom(1 / ZOOM_STEP);
    if (command === "fit") return painter.current?.fit();
    return false;
  });

  return (
    <div
      class="viewer"
      data-testid="viewer"
      data-number={opened.number}
      data-state={state.name}
      data-kind={kind ?? ""}
    >
      <div class="stage">
        <canvas ref={canvas} tabIndex={0} role="img" aria-label={`Picture of ${opened.case}`} data-testid="canvas" />
        <canvas ref={over} class="over" aria-hidden="true" data-testid="outlines" />
        {opened.view.note && (
          <p class="picture-note" data-testid="picture-note">
            {opened.view.note}
          </p>
        )}
        <OrientationNote view={opened.view} />
        {state.name === "loading" && <Loading what="Loading the picture" />}
        {state.name === "refining" && (
          <p class="refining" role="status">
            Loading details …
          </p>
        )}
        {state.name === "failed" && (
          <p class="stage-note" role="alert" data-testid="viewer-problem">
            {state.text}
          </p>
        )}
        <ZoomButtons onZoom={(factor) => painter.current?.zoom(factor)} onFit={() => painter.current?.fit()} />
      </div>
      <Controls opened={opened} shown={shown} onChange={change} hasPlanes={kind === "volume"} />
    </div>
  );
}

function within(shown: Shown, { view }: Opened): Shown {
  return { ...shown, slice: Math.min(Math.max(shown.slice, 0), sliceCount(view) - 1) };
}

interface Painting {
  canvas: RefObject<HTMLCanvasElement>;
  over: RefObject<HTMLCanvasElement>;
  painter: RefObject<Painter>;
  /** Null until it is clear what draws. */
  kind: "picture" | "volume" | null;
}

/** NiiVue for volumes where the browser can, tiles for everything else. */
function usePainter(opened: Opened, events: PainterEvents): Painting {
  const [canvas, over] = [useRef<HTMLCanvasElement>(null), useRef<HTMLCanvasElement>(null)];
  const painter = useRef<Painter>(null);
  const [kind, setKind] = useState<"picture" | "volume" | null>(null);
  useEffect(() => {
    let gone = false;
    const begin = (made: Painter, name: "picture" | "volume") => {
      painter.current = made;
      setKind(name);
    };
    const asPicture = () => begin(new PicturePainter(canvas.current!, opened, events), "picture");
    if (opened.view.dimensions === 2) asPicture();
    else {
      events.onState("loading");
      loadVolumes().then((volumes) => {
        if (gone) return;
        if (volumes) begin(new volumes.VolumePainter(canvas.current!, over.current!, opened, events), "volume");
        else asPicture();
      });
    }
    return () => {
      gone = true;
      painter.current?.stop();
    };
  }, []);
  return { canvas, over, painter, kind };
}

/** The module for volumes; null where it cannot run. */
async function loadVolumes() {
  if (!document.createElement("canvas").getContext("webgl2")) return null;
  return import("./volume").catch(() => null);
}
