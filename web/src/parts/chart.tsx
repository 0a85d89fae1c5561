/** Line charts as SVG; sizes come from the box they are in. */

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Scale {
  (value: number): number;
  domain: [number, number];
}

export function scale(domain: [number, number], range: [number, number]): Scale {
  const span = domain[1] - domain[0] || 1;
  return Object.assign((value: number) => range[0] + ((value - domain[0]) / span) * (range[1] - range[0]), { domain });
}

/** Round numbers in a domain, about as many as wanted. */
export function ticks([low, high]: [number, number], wanted = 5): number[] {
  const rough = (high - low) / wanted;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough - 1e-12)!;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Points as the path of a line; gaps where a value is missing. */
export function linePath(xs: number[], ys: (number | null)[], x: Scale, y: Scale, steps = false): string {
  let path = "";
  let isDown = false;
  ys.forEach((value, i) => {
    if (value === null || !Number.isFinite(value)) return void (isDown = false);
    const [px, py] = [x(xs[i]!).toFixed(1), y(value).toFixed(1)];
    path += !isDown ? `M${px},${py}` : steps ? `H${px}V${py}` : `L${px},${py}`;
    isDown = true;
  });
  return path;
}

export interface Frame {
  x: Scale;
  y: Scale;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const MARGIN = { left: 46, right: 14, top: 10, bottom: 34 };

interface ChartProps {
  label: string;
  xDomain: [number, number];
  yDomain: [number, number];
  xTitle: string;
  yTitle: string;
  yFormat?: (value: number) => string;
  xFormat?: (value: number) => string;
  onPick?: (x: number) => void;
  testid?: string;
  /** The axis that counts: it has no ticks between whole numbers. */
  counts?: "x" | "y";
  children: (frame: Frame) => ComponentChildren;
}

export function Chart({
  label,
  xDomain,
  yDomain,
  xTitle,
  yTitle,
  xFormat = String,
  yFormat = String,
  onPick,
  testid,
  counts,
  children,
}: ChartProps) {
  const [box, size] = useSize();
  const [left, right, top, bottom] = [MARGIN.left, size.width - MARGIN.right, MARGIN.top, size.height - MARGIN.bottom];
  const x = scale(xDomain, [left, right]);
  const y = scale(yDomain, [bottom, top]);
  const pick = (event: PointerEvent) => {
    if (!onPick || event.buttons !== 1) return;
    const place = event.clientX - (event.currentTarget as Element).getBoundingClientRect().left;
    onPick(
      Math.min(
        Math.max(xDomain[0] + ((place - left) / (right - left)) * (xDomain[1] - xDomain[0]), xDomain[0]),
        xDomain[1],
      ),
    );
  };
  return (
    <div class="chart" ref={box}>
      <svg
        role="img"
        aria-label={label}
        data-testid={testid}
        width={size.width}
        height={size.height}
        class={onPick ? "pickable" : ""}
        onPointerDown={pick}
        onPointerMove={pick}
      >
        {ticks(yDomain)
          .filter((tick) => counts !== "y" || Number.isInteger(tick))
          .map((tick) => (
            <g key={tick}>
              <line class="rule" x1={left} x2={right} y1={y(tick)} y2={y(tick)} />
              <text class="tick" x={left - 6} y={y(tick) + 4} text-anchor="end">
                {yFormat(tick)}
              </text>
            </g>
          ))}
        {ticks(xDomain, 8)
          .filter((tick) => counts !== "x" || Number.isInteger(tick))
          .map((tick) => (
            <g key={tick}>
              <line class="mark" x1={x(tick)} x2={x(tick)} y1={bottom} y2={bottom + 4} />
              <text class="tick" x={x(tick)} y={bottom + 16} text-anchor="middle">
                {xFormat(tick)}
              </text>
            </g>
          ))}
        <text class="axis" x={(left + right) / 2} y={size.height - 3} text-anchor="middle">
          {xTitle}
        </text>
        <text class="axis" x={-(top + bottom) / 2} y={11} text-anchor="middle" transform="rotate(-90)">
          {yTitle}
        </text>
        {children({ x, y, left, right, top, bottom })}
      </svg>
    </div>
  );
}

function useSize(): [RefObject<HTMLDivElement>, { width: number; height: number }] {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 600, height: 260 });
  useEffect(() => {
    const watcher = new ResizeObserver(
      ([entry]) => entry && setSize({ width: entry.contentRect.width, height: entry.contentRect.height }),
    );
    watcher.observe(box.current!);
    return () => watcher.disconnect();
  }, []);
  return [box, size];
}
