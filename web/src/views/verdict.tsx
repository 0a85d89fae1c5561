/** Buttons, comment and history with which a case is decided. */

import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Entry, Row, Verdict } from "../api";
import { decide, drafts, log, settings, standing, undoOn } from "../desk";
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
  decide: (verdict: Verdict) => void;
  comment: () => void;
}

interface VerdictProps {
  row: Row;
  onDecided: () => void;
  handle: RefObject<VerdictHandle>;
}

export function VerdictForm({ row, onDecided, handle }: VerdictProps) {
  useStore(log);
  const { reviewer, advance } = useStore(settings);
  const [comment, setComment] = useState(() => drafts.read(row.number));
  const [isSaving, setSaving] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const mine = standing().mine(row, reviewer);

  const type = (text: string) => {
    setComment(text);
    drafts.write(row.number, text);
  };
  const give = async (verdict: Verdict) => {
    if (isSaving) return;
    setSaving(true);
    const saved = await decide(row, verdict, comment.trim());
    setSaving(false);
    if (!saved) return;
    type("");
    onDecided();
  };
  handle.current = { decide: (verdict) => void give(verdict), comment: () => field.current?.focus() };

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
            disabled={isSaving}
            onClick={() => void give(verdict)}
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
          value={comment}
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

function isAbout(entry: Entry, row: Row): boolean {
  return entry.case === row.case && entry.structure === row.structure && (entry.set ?? "") === (row.set ?? "");
}
