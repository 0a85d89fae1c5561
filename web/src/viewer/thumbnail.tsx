/** A small still picture of a case: its most uncertain slice if it is a volume. */

import { useEffect, useRef } from "preact/hooks";
import { type Opened, atFirst } from "./layers";
import { OrientationNote } from "./note";
import { PicturePainter } from "./picture";

const UNHEARD = { onChange: () => {}, onState: () => {} };

export function Thumbnail({ opened }: { opened: Opened }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const painter = new PicturePainter(canvas.current!, opened, UNHEARD, true);
    painter.show(atFirst(opened.view));
    return () => painter.stop();
  }, [opened.number]);
  return (
    <>
      <canvas ref={canvas} role="img" aria-label={`Picture of ${opened.case}`} data-testid="thumbnail" />
      <OrientationNote view={opened.view} />
    </>
  );
}
