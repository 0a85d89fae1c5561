/** How numbers and times are written. */

const NOTHING = "–";

export function number(value: number | null | undefined, digits = 3): string {
  return value == null || !Number.isFinite(value) ? NOTHING : value.toFixed(digits).replace("-", "−");
}

export function percent(value: number | null | undefined, digits = 1): string {
  return value == null || !Number.isFinite(value) ? NOTHING : `${(100 * value).toFixed(digits)}\u202f%`;
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

/** A value of the score table, whatever it is. */
export function anything(value: unknown): string {
  if (value == null) return NOTHING;
  if (typeof value === "number")
    return Number.isInteger(value)
      ? count(value)
      : Math.abs(value) >= 1e4 || Math.abs(value) < 1e-4
        ? value.toExponential(2)
        : number(value, 4);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
