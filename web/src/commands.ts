/** Keys reach the views here: whoever is on the screen last hears first. */

import { useEffect, useRef } from "preact/hooks";
import { type Command, type ViewName, belongsToField, commandOf } from "./keys";

type Handler = (command: Command) => boolean | void;

const handlers: Handler[] = [];

/** Hear commands as long as the component is shown; false passes one on. */
export function useCommands(handler: Handler): void {
  const latest = useRef(handler);
  latest.current = handler;
  useEffect(() => {
    const hear: Handler = (command) => latest.current(command);
    handlers.push(hear);
    return () => void handlers.splice(handlers.indexOf(hear), 1);
  }, []);
}

export function give(command: Command): boolean {
  return handlers.toReversed().some((handler) => handler(command) !== false);
}

export function listenToKeys(view: () => ViewName): () => void {
  const pressed = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (
      document.querySelector("dialog[open]") ||
      belongsToField(target.tagName, (target as HTMLInputElement).type, event.key)
    )
      return;
    const command = commandOf(event, view());
    if (command === "back" && leavesField(target)) return;
    if (command && give(command)) event.preventDefault();
  };
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}

/** Escape leaves a field first, and goes back only then. */
function leavesField(target: HTMLElement): boolean {
  if (!["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)) return false;
  target.blur();
  return true;
}
