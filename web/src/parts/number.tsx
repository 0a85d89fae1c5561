/** A field for a number, in which what is being typed stays, whatever is drawn meanwhile. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

interface NumberFieldProps extends Omit<JSX.IntrinsicElements["input"], "value" | "onChange" | "onInput"> {
  value: number;
  /** Every number on the way is meant, not only the last one. */
  isEager?: boolean;
  onChange: (value: number) => void;
}

/** Preact writes the value into a field whenever it draws: until the field is left, that is what stands there. */
export function NumberField({ value, isEager = false, onChange, ...others }: NumberFieldProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const tell = ({ valueAsNumber }: HTMLInputElement) => Number.isFinite(valueAsNumber) && onChange(valueAsNumber);
  return (
    <input
      {...others}
      type="number"
      value={typed ?? String(value)}
      onInput={({ currentTarget }) => {
        setTyped(currentTarget.value);
        if (isEager) tell(currentTarget);
      }}
      onChange={({ currentTarget }) => {
        if (!isEager) tell(currentTarget);
        setTyped(null);
      }}
      onBlur={() => setTyped(null)}
    />
  );
}
