/** Small parts that all views use. */

import type { ComponentChildren } from "preact";
import type { Decision, Entry, Run, Verdict } from "../api";
import { VERDICT_LABELS } from "../log";

const DECISION_LABELS = { accept: "accepted", defer: "deferred", "no finding": "no finding" };
const VERDICT_SIGNS: Record<Verdict, string> = { accept: "✓", reject: "✕", correct: "✎" };

/** What is decided, or would be by a threshold that is only tried. */
export function DecisionTag({ decision, isTrial = false }: { decision: Decision; isTrial?: boolean }) {
  const label = decision ? DECISION_LABELS[decision] : "no policy";
  return (
    <span class={`tag decision-${(decision || "open").replace(" ", "-")} ${isTrial ? "tried" : ""}`}>
      {isTrial && decision ? `trial: ${label}` : label}
    </span>
  );
}

export function VerdictTag({ entry, me }: { entry: Entry; me: string }) {
  const verdict = entry.verdict as Verdict;
  const who = entry.reviewer === me ? "" : ` · ${entry.reviewer}`;
  return (
    <span
      class={`verdict verdict-${verdict}`}
      title={`${VERDICT_LABELS[verdict]} by ${entry.reviewer}${entry.comment ? `: ${entry.comment}` : ""}`}
    >
      <span aria-hidden="true">{VERDICT_SIGNS[verdict]}</span> {VERDICT_LABELS[verdict]}
      {who}
    </span>
  );
}

export function Key({ children }: { children: ComponentChildren }) {
  return <kbd aria-hidden="true">{children}</kbd>;
}

/** What to say where there is nothing to show. */
export function Nothing({ title, children, testid }: { title: string; children?: ComponentChildren; testid?: string }) {
  return (
    <div class="nothing" data-testid={testid ?? "empty"}>
      <p class="nothing-title">{title}</p>
      {children}
    </div>
  );
}

export function Problem({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  return (
    <div class="nothing problem" role="alert" data-testid="problem">
      <p class="nothing-title">This did not work</p>
      <p>{error.message}</p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <div class="nothing loading" role="status" data-testid="loading">
      {what} …
    </div>
  );
}

/** A number with its name, large enough to be read at a glance. */
export function Figure({
  label,
  value,
  note,
  testid,
  tone,
}: {
  label: string;
  value: string;
  note?: string;
  testid?: string;
  tone?: string;
}) {
  return (
    <div class={`figure ${tone ?? ""}`}>
      <dt>{label}</dt>
      <dd>
        <span data-testid={testid}>{value}</span>
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

/** What a press shows, and what goes away when it is left. */
export function Menu({
  label,
  children,
  testid,
}: {
  label: ComponentChildren;
  children: ComponentChildren;
  testid: string;
}) {
  const left = (event: FocusEvent & { currentTarget: HTMLDetailsElement }) => {
    if (!event.currentTarget.contains(event.relatedTarget as Node | null)) event.currentTarget.open = false;
  };
  const pressed = (event: KeyboardEvent & { currentTarget: HTMLDetailsElement }) => {
    if (event.key !== "Escape" || !event.currentTarget.open) return;
    event.stopPropagation();
    event.currentTarget.open = false;
    event.currentTarget.querySelector("summary")?.focus();
  };
  return (
    <details class="menu" onFocusOut={left} onKeyDown={pressed}>
      <summary data-testid={testid}>{label}</summary>
      {children}
    </details>
  );
}

/** A choice between values; "all" is none of them. */
export function Choice({
  label,
  value,
  options,
  all,
  onChange,
  testid,
}: {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  all?: string;
  onChange: (value: string) => void;
  testid: string;
}) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} data-testid={testid} onChange={(event) => onChange(event.currentTarget.value)}>
        {all !== undefined && <option value="">{all}</option>}
        {options.map(([name, shown]) => (
          <option key={name} value={name}>
            {shown}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Which structure a view is about, where there are several. */
export function StructureChoice({
  run,
  structure,
  onChange,
  testid,
}: {
  run: Run;
  structure: string;
  onChange: (structure: string) => void;
  testid: string;
}) {
  if (run.structures.length < 2) return null;
  const options = run.structures.map((name) => [name, name] as const);
  return <Choice label="Structure" testid={testid} value={structure} options={options} onChange={onChange} />;
}
