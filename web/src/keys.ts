/** Which key does what, in which view. The help is made from the same table. */

export type ViewName = "worklist" | "case" | "threshold" | "monitoring";

export type Command =
  | "next"
  | "previous"
  | "first"
  | "last"
  | "page-down"
  | "page-up"
  | "open"
  | "back"
  | "accept"
  | "reject"
  | "correct"
  | "undo"
  | "comment"
  | "search"
  | "help"
  | "refresh"
  | "zoom-in"
  | "zoom-out"
  | "fit"
  | "toggle-overlay"
  | "toggle-mask"
  | "toggle-truth"
  | "less-opacity"
  | "more-opacity"
  | "slice-up"
  | "slice-down"
  | "middle"
  | "uncertain";

export interface Binding {
  keys: string[];
  command: Command;
  help: string;
  views: ViewName[];
}

const LIST: ViewName[] = ["worklist"];
const CASE: ViewName[] = ["case"];
const CASES: ViewName[] = ["worklist", "case"];
const ALL: ViewName[] = ["worklist", "case", "threshold", "monitoring"];

export const BINDINGS: Binding[] = [
  { keys: ["j", "ArrowDown"], command: "next", help: "Next row", views: LIST },
  { keys: ["k", "ArrowUp"], command: "previous", help: "Previous row", views: LIST },
  { keys: ["j", "n"], command: "next", help: "Next case", views: CASE },
  { keys: ["k", "p"], command: "previous", help: "Previous case", views: CASE },
  { keys: ["Home"], command: "first", help: "First row", views: LIST },
  { keys: ["End"], command: "last", help: "Last row", views: LIST },
  { keys: ["PageDown"], command: "page-down", help: "A screen down", views: LIST },
  { keys: ["PageUp"], command: "page-up", help: "A screen up", views: LIST },
  { keys: ["Enter"], command: "open", help: "Open the case", views: LIST },
  { keys: ["g"], command: "refresh", help: "Ask the server for the list again", views: LIST },
  { keys: ["a"], command: "accept", help: "Accept", views: CASES },
  { keys: ["r"], command: "reject", help: "Reject", views: CASES },
  { keys: ["c"], command: "correct", help: "Needs correction", views: CASES },
  { keys: ["u"], command: "undo", help: "Take back my verdict", views: CASES },
  { keys: ["e"], command: "comment", help: "Write a comment", views: CASES },
  { keys: ["+", "="], command: "zoom-in", help: "Zoom in", views: CASE },
  { keys: ["-"], command: "zoom-out", help: "Zoom out", views: CASE },
  { keys: ["0"], command: "fit", help: "Fit to the window", views: CASE },
  { keys: ["o"], command: "toggle-overlay", help: "Probabilities on and off", views: CASE },
  { keys: ["m"], command: "toggle-mask", help: "Mask on and off", views: CASE },
  { keys: ["t"], command: "toggle-truth", help: "Truth on and off", views: CASE },
  { keys: ["["], command: "less-opacity", help: "Fainter probabilities", views: CASE },
  { keys: ["]"], command: "more-opacity", help: "Stronger probabilities", views: CASE },
  { keys: ["ArrowUp", "PageUp"], command: "slice-up", help: "Next slice", views: CASE },
  { keys: ["ArrowDown", "PageDown"], command: "slice-down", help: "Previous slice", views: CASE },
  { keys: ["x"], command: "uncertain", help: "Most uncertain slice", views: CASE },
  { keys: ["h"], command: "middle", help: "Middle slice", views: CASE },
  { keys: ["/"], command: "search", help: "Search", views: LIST },
  { keys: ["Escape"], command: "back", help: "Back; leave a field", views: ALL },
  { keys: ["?"], command: "help", help: "This help", views: ALL },
];

export interface Pressed {
  key: string;
  /** Whether the key is held down. */
  repeat?: boolean;
  ctrlKey?: boolean;
  metaKey?: boolean;
  altKey?: boolean;
}

/** Commands that are given once, however long a key is held down: nobody decides on what flies past. */
const ONCE: readonly Command[] = ["accept", "reject", "correct", "undo", "open", "comment", "refresh"];

/** The command of a key; none for shortcuts of the browser. */
export function commandOf(pressed: Pressed, view: ViewName): Command | null {
  if (pressed.ctrlKey || pressed.metaKey || pressed.altKey) return null;
  const binding = BINDINGS.find(({ keys, views }) => views.includes(view) && keys.includes(pressed.key));
  return binding && !(pressed.repeat && ONCE.includes(binding.command)) ? binding.command : null;
}

const NAMES: Record<string, string> = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  Escape: "Esc",
  PageDown: "Page ↓",
  PageUp: "Page ↑",
};

export function keyName(key: string): string {
  return NAMES[key] ?? key;
}

/** Whether a key belongs to the field or button that has the focus, not to the page. */
export function belongsToField(tag: string, type: string | undefined, key: string): boolean {
  if (tag === "TEXTAREA" || tag === "SELECT") return key !== "Escape";
  if (tag === "INPUT" && type === "range")
    return key.startsWith("Arrow") || key.startsWith("Page") || key === "Home" || key === "End";
  if (tag === "INPUT" && type === "checkbox") return key === " ";
  if (tag === "INPUT") return key !== "Escape";
  return ["BUTTON", "A", "SUMMARY"].includes(tag) && (key === "Enter" || key === " ");
}
