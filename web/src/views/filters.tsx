/** Search and filters over the worklist. */

import { useEffect, useState } from "preact/hooks";
import type { Run } from "../api";
import { Choice, Key } from "../parts/basics";
import type { Query } from "../route";

const DECISIONS = [
  ["defer", "deferred"],
  ["accept", "accepted"],
  ["no finding", "no finding"],
] as const;
const VERDICTS = [
  ["undecided", "undecided"],
  ["decided", "decided"],
  ["mine", "by me"],
  ["accept", "accepted"],
  ["reject", "rejected"],
  ["correct", "to correct"],
] as const;

interface FiltersProps {
  run: Run;
  query: Query;
  onChange: (change: Query) => void;
  onRefresh: () => void;
}

export function Filters({ run, query, onChange, onRefresh }: FiltersProps) {
  const choices = choicesOf(run);
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <Search text={query.search ?? ""} onChange={(search) => onChange({ search })} />
      {choices.map(({ name, label, options }) => (
        <Choice
          key={name}
          label={label}
          testid={`filter-${name}`}
          value={query[name] ?? ""}
          options={options}
          all="all"
          onChange={(value) => onChange({ [name]: value })}
        />
      ))}
      <button
        type="button"
        class="quiet"
        data-testid="refresh"
        title="Ask the server again (g)"
        aria-label="Refresh the list"
        onClick={onRefresh}
      >
        ↻
      </button>
    </form>
  );
}

/** What can be chosen by; of sets, groups and structures only where there are several. */
function choicesOf(run: Run) {
  const named = (names: string[]) => names.map((name) => [name, name || "none"] as const);
  const several = [
    { name: "structure", label: "Structure", options: named(run.structures) },
    { name: "set", label: "Set", options: named(run.sets) },
    { name: "group", label: "Group", options: named(run.groups) },
  ].filter(({ options }) => options.length > 1);
  return [
    { name: "decision", label: "Decision", options: DECISIONS },
    { name: "verdict", label: "Verdict", options: VERDICTS },
    ...several,
  ];
}

const TYPING_MS = 200;

/** What is being typed stays, whatever is drawn meanwhile, until it is what is sought. */
function Search({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const [typed, setTyped] = useState<string | null>(null);
  useEffect(() => {
    if (typed === null) return;
    const timer = setTimeout(() => {
      onChange(typed);
      setTyped(null);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const shown = typed ?? text;
  return (
    <label class="search">
      <span class="visually-hidden">Search by case name</span>
      <input
        id="search"
        data-testid="search"
        type="search"
        placeholder="Search cases"
        autocomplete="off"
        spellcheck={false}
        value={shown}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      {!shown && <Key>/</Key>}
    </label>
  );
}
