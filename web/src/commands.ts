/** Keys reach the views here: whoever is on the screen last hears first. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { type Command, type ViewName, belongsToField, commandOf } from "./keys";
import { Typing } from "./typing";

type Handler = (command: Command) => boolean | void;

const handlers: Handler[] = [];

/** Hear commands as long as the component is shown; false passes one on. */
export function useCommands(handler: Handler): void {
  const latest = useRef(handler);
  latest.current = handler;
  // Whoever sees a view may press its keys at once.
  useLayoutEffect(() => {
    const hear: Handler = (command) => latest.current(command);
    handlers.push(hear);
    return () => void handlers.splice(handlers.indexOf(hear), 1);
  }, []);
}

export function give(command: Command): boolean {
  return handlers.toReversed().some((handler) => handler(command) !== false);
}

const typing = new Typing();

/** Take keys for text until a comment can be written, see `Typing`. */
export function expectText(): void {
  typing.expect();
}

export function listenToKeys(view: () => ViewName, onTypedOn: () => void): () => void {
  const pressed = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (typing.goesOn(event.key)) return onTypedOn();
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
  const unwatch = typing.watch();
  return () => {
    removeEventListener("keydown", pressed);
    unwatch();
  };
}

/** Escape leaves a field first, and goes back only then. */
function leavesField(target: HTMLElement): boolean {
  if (!["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)) return false;
  target.blur();
  typing.end(); // on purpose: the next key is a command, even where it takes the field away
  return true;
}
