/** Buttons, comment and history with which a case is decided. */

import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Entry, Row, Verdict } from "../api";
import { decide, draftChanges, drafts, isOnItsWay, log, onTheirWay, settings, standing, undoOn } from "../desk";
import { time } from "../format";
import { VERDICT_LABELS } from "../log";
import { Key } from "../parts/basics";
import { useStore } from "../store";

const BUTTONS: [Verdict, string, string][] = [
  ["accept", "Accept", "a"],
  ["reject", "Reject", "r"],
  ["correct", "Needs correction", "c"],
];

export interface VerdictHandle {
  /** Of the case that is decided on. */
  number: number;
  decide: (verdict: Verdict) => void;
  comment: () => void;
}

interface VerdictProps {
  row: Row;
  /** What is next, where a verdict leads on. */
  onDecided: () => void;
  handle: RefObject<VerdictHandle>;
}

export function VerdictForm({ row, onDecided, handle }: VerdictProps) {
  useStore(log);
  const { reviewer, advance } = useStore(settings);
  useStore(draftChanges);
  useStore(onTheirWay);
  const field = useRef<HTMLTextAreaElement>(null);
  const mine = standing().mine(row, reviewer);

  const type = (text: string) => drafts.write(row, text);
  const decided = useRef(onDecided);
  decided.current = onDecided; // what is next may have come while the verdict was on its way
  const give = async (verdict: Verdict) => {
    const comment = drafts.read(row); // as it is now: the last letters may not be drawn yet
    if (!(await decide(row, verdict, comment.trim()))) return;
    const rest = textAfter(comment, drafts.read(row));
    type(rest);
    const isTyping = document.activeElement === field.current; // on, for a verdict to come: nothing moves away
    if (settings.value.advance && !rest && !isTyping) decided.current();
    setTimeout(keepFocus); // once the next form is drawn
  };
  // No key decides on a case once its form is gone: the next one may still be on its way.
  useLayoutEffect(() => {
    handle.current = {
      number: row.number,
      decide: (verdict) => void give(verdict),
      comment: () => field.current?.focus(),
    };
    return () => {
      handle.current = null;
    };
  });

  return (
    <section class="verdict-form" aria-label="Verdict">
      <div class="verdict-buttons">
        {BUTTONS.map(([verdict, label, key]) => (
          <button
            key={verdict}
            type="button"
            class={`decide ${verdict}`}
            data-testid={`verdict-${verdict}`}
            aria-pressed={mine?.verdict === verdict}
            aria-keyshortcuts={key}
            aria-disabled={isOnItsWay(row)}
            onClick={() => void give(verdict)}
            onKeyDown={(event) => event.repeat && event.preventDefault()} // a key that is held decides once
          >
            {label} <Key>{key}</Key>
          </button>
        ))}
      </div>
      <label class="comment">
        <span class="visually-hidden">Comment</span>
        <textarea
          ref={field}
          data-testid="comment"
          rows={2}
          maxLength={2000}
          placeholder="Comment, kept with the verdict (e)"
          value={drafts.read(row)}
          onInput={(event) => type(event.currentTarget.value)}
        />
      </label>
      <div class="verdict-foot">
        <label class="check">
          <input
            type="checkbox"
            data-testid="advance"
            checked={advance}
            onChange={(event) => settings.update({ advance: event.currentTarget.checked })}
          />{" "}
          Go on after a verdict
        </label>
        <button
          type="button"
          class="quiet"
          data-testid="undo"
          aria-keyshortcuts="u"
          disabled={!mine}
          onClick={() => void undoOn(row)}
        >
          Undo <Key>u</Key>
        </button>
      </div>
    </section>
  );
}

/** Whoever works by keys is not thrown back to the top of the page when the form is another. */
function keepFocus(): void {
  if (document.activeElement !== document.body) return;
  (document.querySelector<HTMLElement>("[role=grid]") ?? document.getElementById("main"))?.focus();
}

/** What of a text was typed after it was sent. */
export function textAfter(sent: string, now: string): string {
  return now.startsWith(sent) ? now.slice(sent.length).trimStart() : now;
}

/** All that was ever said of a case, the latest first. */
export function History({ row }: { row: Row }) {
  const entries = useStore(log).filter((entry) => isAbout(entry, row));
  const undone = new Set(entries.map((entry) => entry.undoes));
  if (entries.length === 0)
    return (
      <p class="faint" data-testid="history">
        No verdict yet.
      </p>
    );
  return (
    <ol class="history" data-testid="history">
      {entries.toReversed().map((entry) => (
        <li key={entry.id} class={undone.has(entry.id) ? "undone" : ""}>
          {isOfAnotherMap(entry, row) && <p class="faint">on an earlier map of this case:</p>}
          <span class={`verdict verdict-${entry.verdict || "undo"}`}>
            {entry.verdict ? VERDICT_LABELS[entry.verdict] : "taken back"}
          </span>
          <span class="who">{entry.reviewer}</span>
          <time dateTime={entry.time}>{time(entry.time)}</time>
          {entry.comment && <p>{entry.comment}</p>}
        </li>
      ))}
    </ol>
  );
}

function isOfAnotherMap(entry: Entry, row: Row): boolean {
  return entry.digest !== "" && row.digest !== "" && entry.digest !== row.digest;
}

function isAbout(entry: Entry, row: Row): boolean {
  return entry.case === row.case && entry.structure === row.structure && (entry.set ?? "") === (row.set ?? "");
}
