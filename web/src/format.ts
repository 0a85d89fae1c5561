/** How numbers and times are written. */

const NOTHING = "–";

export function number(value: number | null | undefined, digits = 3): string {
  return value == null || !Number.isFinite(value) ? NOTHING : value.toFixed(digits).replace("-", "−");
}

/** Digits of a threshold after its point. */
export const SIGNIFICANT = 6;

/** A threshold with all digits that are shown of it anywhere, and no zeros at its end. */
export function significant(value: number | null | undefined): string {
  return value == null || !Number.isFinite(value) ? NOTHING : String(Number(value.toFixed(SIGNIFICANT))).replace("-", "−");
}

/** How far above a threshold, with its sign; what is next to it keeps digits that tell on which side. */
export function margin(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NOTHING;
  const digits = value !== 0 && Math.abs(value) < 0.0005 ? 6 : 3;
  return `${value > 0 ? "+" : ""}${number(value, digits)}`;
}

export function percent(value: number | null | undefined, digits = 1): string {
  return value == null || !Number.isFinite(value) ? NOTHING : `${(100 * value).toFixed(digits)}\u202f%`;
}

/** A probability that is promised, with all its digits: rounding would promise more. */
export function exactPercent(value: number): string {
  return `${Number((100 * value).toPrecision(8))}\u202f%`;
}

/** Thousands are set apart by a thin space. */
export function count(value: number | null | undefined): string {
  return value == null ? NOTHING : String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

/** Hours of work: minutes below one hour. */
export function hours(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NOTHING;
  return value < 1 ? `${Math.round(60 * value)} min` : `${value.toFixed(value < 10 ? 1 : 0)} h`;
}

/** A time as the reviewer's clock shows it; the date only if it is not today. */
export function time(iso: string, now = new Date()): string {
  const when = new Date(iso);
  if (Number.isNaN(when.getTime())) return iso;
  const clock = `${pad(when.getHours())}:${pad(when.getMinutes())}`;
  return when.toDateString() === now.toDateString()
    ? clock
    : `${when.getFullYear()}-${pad(when.getMonth() + 1)}-${pad(when.getDate())} ${clock}`;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

/** From here on a number is easier to read as a power of ten. */
const MOST_PLAIN = 1e9;

/** A number with four digits after its point; of a large one with one, and thousands set apart as in counts. */
function plain(value: number): string {
  if (Math.abs(value) < 1e4) return number(value, 4);
  const [whole, rest] = number(value, 1).split(".");
  return `${whole!.replace(/\B(?=(\d{3})+$)/g, "\u2009")}.${rest}`;
}

/** A value of the score table, whatever it is. */
export function anything(value: unknown): string {
  if (value == null) return NOTHING;
  if (typeof value === "number")
    return Number.isInteger(value)
      ? count(value)
      : Math.abs(value) >= MOST_PLAIN || Math.abs(value) < 1e-4
        ? value.toExponential(2)
        : plain(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
