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
  const pick = (name: string) => (value: string) => onChange({ [name]: value });
  const named = (names: string[]) => names.map((name) => [name, name || "none"] as const);
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <Search text={query.search ?? ""} onChange={pick("search")} />
      <Choice
        label="Decision"
        testid="filter-decision"
        value={query.decision ?? ""}
        options={DECISIONS}
        all="all"
        onChange={pick("decision")}
      />
      <Choice
        label="Verdict"
        testid="filter-verdict"
        value={query.verdict ?? ""}
        options={VERDICTS}
        all="all"
        onChange={pick("verdict")}
      />
      {run.structures.length > 1 && (
        <Choice
          label="Structure"
          testid="filter-structure"
          value={query.structure ?? ""}
          options={named(run.structures)}
          all="all"
          onChange={pick("structure")}
        />
      )}
      {run.sets.length > 1 && (
        <Choice
          label="Set"
          testid="filter-set"
          value={query.set ?? ""}
          options={named(run.sets)}
          all="all"
          onChange={pick("set")}
        />
      )}
      {run.groups.length > 1 && (
        <Choice
          label="Group"
          testid="filter-group"
          value={query.group ?? ""}
          options={named(run.groups)}
          all="all"
          onChange={pick("group")}
        />
      )}
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

const TYPING_MS = 200;

function Search({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => {
    if (typed === text) return;
    const timer = setTimeout(() => onChange(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
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
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      {!typed && <Key>/</Key>}
    </label>
  );
}
