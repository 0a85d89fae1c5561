/** Sliders and switches under the picture. */

import { Key } from "../parts/basics";
import { NumberField } from "../parts/number";
import { levelsOf } from "./colours";
import { type Opened, type Shown, rangeOf, sliceCount, usualLevels } from "./layers";

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

/** Level is the value in the middle, window how far the values around it reach. */
function Levels({ opened, shown, onChange }: ControlsProps) {
  const { low, high } = shown.levels;
  const range = rangeOf(opened.view);
  const [level, span, whole] = [(low + high) / 2, high - low, range.high - range.low || 1];
  const set = (middle: number, width: number) => onChange({ levels: levelsOf(middle, width, range) });
  return (
    <div class="control levels">
      <Measure label="Window" testid="window" low={0} high={2 * whole} value={span} onChange={(to) => set(level, to)} />
      <Measure
        label="Level"
        testid="level"
        low={range.low}
        high={range.high}
        value={level}
        onChange={(to) => set(to, span)}
      />
      <button
        type="button"
        class="quiet"
        data-testid="reset-levels"
        aria-label="Reset window and level"
        onClick={() => onChange({ levels: usualLevels(opened.view) })}
      >
        ↺
      </button>
    </div>
  );
}

/** A value by a slider, and as a number that can be typed. */
function Measure(props: SliderProps) {
  const { label, testid, low, high, value, onChange } = props;
  const step = (high - low) / 512;
  const digits = Math.max(0, 1 - Math.floor(Math.log10(step || 1)));
  return (
    <>
      <span class="control-name">{label}</span>
      <Slider {...props} step={step} />
      <NumberField
        class="measure"
        aria-label={`${label}, as a number`}
        data-testid={`${testid}-value`}
        step="any"
        value={Number(value.toFixed(Math.min(digits, 12)))}
        onChange={onChange}
      />
    </>
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

interface SliderProps {
  label: string;
  testid: string;
  low: number;
  high: number;
  value: number;
  step?: number;
  onChange: (value: number) => void;
}

function Slider({ label, testid, low, high, value, step = 1, onChange }: SliderProps) {
  return (
    <input
      type="range"
      aria-label={label}
      data-testid={testid}
      min={low}
      max={high}
      step={step || "any"}
      value={value}
      onInput={(event) => onChange(Number(event.currentTarget.value))}
    />
  );
}
