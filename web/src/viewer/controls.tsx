/** Sliders and switches under the picture. */

import { Key } from "../parts/basics";
import { type Opened, type Shown, sliceCount } from "./layers";

interface ControlsProps {
  opened: Opened;
  shown: Shown;
  onChange: (change: Partial<Shown>) => void;
  hasPlanes: boolean;
}

export function Controls(props: ControlsProps) {
  const { opened, shown, onChange } = props;
  const has = (layer: (typeof opened.view.layers)[number]) => opened.view.layers.includes(layer);
  return (
    <div class="controls" role="group" aria-label="Picture">
      {opened.view.dimensions === 3 && <Slices {...props} />}
      {has("probabilities") && (
        <div class="control">
          <Switch
            label="Probabilities"
            hint="o"
            testid="show-overlay"
            swatch="overlay"
            on={shown.overlay}
            onChange={(overlay) => onChange({ overlay })}
          />
          <Slider
            label="Opacity of the probabilities"
            testid="opacity"
            low={0}
            high={100}
            value={Math.round(100 * shown.opacity)}
            onChange={(value) => onChange({ opacity: value / 100, overlay: true })}
          />
        </div>
      )}
      <div class="control">
        {has("mask") && (
          <Switch
            label="Mask"
            hint="m"
            testid="show-mask"
            swatch="mask"
            on={shown.mask}
            onChange={(mask) => onChange({ mask })}
          />
        )}
        {has("truth") && (
          <Switch
            label="Truth"
            hint="t"
            testid="show-truth"
            swatch="truth"
            on={shown.truth}
            onChange={(truth) => onChange({ truth })}
          />
        )}
      </div>
      {has("image") && <Levels {...props} />}
    </div>
  );
}

export function ZoomButtons({ onZoom, onFit }: { onZoom: (factor: number) => void; onFit: () => void }) {
  return (
    <div class="zoom" role="group" aria-label="Zoom">
      <button type="button" aria-label="Zoom out" data-testid="zoom-out" onClick={() => onZoom(0.8)}>
        −
      </button>
      <button type="button" aria-label="Fit to the window" data-testid="fit" onClick={onFit}>
        fit
      </button>
      <button type="button" aria-label="Zoom in" data-testid="zoom-in" onClick={() => onZoom(1.25)}>
        +
      </button>
    </div>
  );
}

function Slices({ opened, shown, onChange, hasPlanes }: ControlsProps) {
  const { slices } = opened.view;
  return (
    <div class="control slices">
      <span class="control-name">Slice</span>
      <Slider
        label="Slice"
        testid="slice"
        low={0}
        high={sliceCount(opened.view) - 1}
        value={shown.slice}
        onChange={(slice) => onChange({ slice })}
      />
      <output data-testid="slice-number">
        {shown.slice + 1}/{sliceCount(opened.view)}
      </output>
      {slices && (
        <button type="button" class="quiet" data-testid="go-middle" onClick={() => onChange({ slice: slices.middle })}>
          middle <Key>h</Key>
        </button>
      )}
      {slices && (
        <button
          type="button"
          class="quiet"
          data-testid="go-uncertain"
          onClick={() => onChange({ slice: slices.uncertain })}
        >
          uncertain <Key>x</Key>
        </button>
      )}
      {hasPlanes && (
        <button
          type="button"
          class="quiet"
          data-testid="multiplanar"
          aria-pressed={shown.multiplanar}
          onClick={() => onChange({ multiplanar: !shown.multiplanar })}
        >
          3 planes
        </button>
      )}
    </div>
  );
}

/** Level is the grey in the middle, window how far the greys around it reach. */
function Levels({ shown, onChange }: ControlsProps) {
  const { low, high } = shown.levels;
  const [level, span] = [(low + high) / 2, high - low];
  const set = (middle: number, width: number) =>
    onChange({ levels: { low: Math.round(middle - width / 2), high: Math.round(middle + width / 2) } });
  return (
    <div class="control levels">
      <span class="control-name">Window</span>
      <Slider label="Window" testid="window" low={4} high={510} value={span} onChange={(width) => set(level, width)} />
      <span class="control-name">Level</span>
      <Slider
        label="Level"
        testid="level"
        low={0}
        high={255}
        value={Math.round(level)}
        onChange={(middle) => set(middle, span)}
      />
      <button
        type="button"
        class="quiet"
        data-testid="reset-levels"
        aria-label="Reset window and level"
        onClick={() => onChange({ levels: shown.usualLevels })}
      >
        ↺
      </button>
    </div>
  );
}

function Switch({
  label,
  hint,
  testid,
  swatch,
  on,
  onChange,
}: {
  label: string;
  hint: string;
  testid: string;
  swatch: string;
  on: boolean;
  onChange: (on: boolean) => void;
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        data-testid={testid}
        checked={on}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span class={`swatch ${swatch}`} aria-hidden="true" /> {label} <Key>{hint}</Key>
    </label>
  );
}

function Slider({
  label,
  testid,
  low,
  high,
  value,
  onChange,
}: {
  label: string;
  testid: string;
  low: number;
  high: number;
  value: number;
  onChange: (value: number) => void;
}) {
  return (
    <input
      type="range"
      aria-label={label}
      data-testid={testid}
      min={low}
      max={high}
      value={value}
      onInput={(event) => onChange(Number(event.currentTarget.value))}
    />
  );
}
