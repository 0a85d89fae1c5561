/** The worklist: which cases wait, the most doubtful first; a preview and the verdict beside it. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Refused, type Run, type Verdict } from "../api";
import { useCommands } from "../commands";
import { api, go, returns, route, settings, undoOn } from "../desk";
import { count } from "../format";
import type { Command } from "../keys";
import { Pages } from "../pages";
import { Loading, Nothing, Problem } from "../parts/basics";
import { type Query } from "../route";
import { extentOf } from "../statistics";
import { useLoaded, useStore } from "../store";
import { clamp } from "../virtual";
import { Filters } from "./filters";
import { Grid, type GridHandle } from "./grid";
import { Preview } from "./preview";
import type { VerdictHandle } from "./verdict";

export const VERDICT_OF: Partial<Record<Command, Verdict>> = { accept: "accept", reject: "reject", correct: "correct" };

export function Worklist({ run }: { run: Run }) {
  const { query, at } = useStore(route);
  const [round, again] = useState(0);
  const pages = usePages(query, round, run.version);
  const extent = useExtent(run);
  const grid = useRef<GridHandle>(null);
  const preview = useRef<VerdictHandle>(null);
  const total = pages.total ?? 0;
  const selected = clamp(at, 0, total - 1);
  const row = total > 0 ? pages.row(selected) : null;
  const select = (index: number) => go({ at: clamp(index, 0, total - 1) }, true);
  const open = (index = selected) => {
    const target = pages.row(index);
    if (target) go({ view: "case", number: target.number, at: index });
  };

  useCommands((command) => {
    const step = stepOf(command, grid.current?.rowsVisible() ?? 10, total);
    if (step !== null) return select(selected + step);
    const verdict = VERDICT_OF[command];
    if (verdict) return row ? preview.current?.decide(verdict) : undefined;
    if (command === "open") return open();
    if (command === "undo") return void undoOn(row);
    if (command === "comment") return preview.current?.comment();
    if (command === "refresh") return again((value) => value + 1);
    if (command === "search") return document.getElementById("search")?.focus();
    if (command === "back" && Object.keys(query).length > 0) return go({ query: {}, at: 0 });
    return false;
  });

  return (
    <div class="worklist">
      <section class="list" aria-label="Worklist">
        <Filters
          run={run}
          query={query}
          onChange={(change) => go({ query: merged(query, change), at: 0 }, true)}
          onRefresh={() => again((value) => value + 1)}
        />
        <p class="visually-hidden" role="status" aria-live="polite" data-testid="total">
          {pages.total === null ? "Loading" : `${count(pages.total)} ${pages.total === 1 ? "case" : "cases"}`}
        </p>
        {pages.total === null ? (
          pages.error ? (
            <Problem error={pages.error} onRetry={() => again((value) => value + 1)} />
          ) : (
            <Loading what="Reading the worklist" />
          )
        ) : total === 0 ? (
          <EmptyList run={run} query={query} />
        ) : (
          <Grid
            handle={grid}
            run={run}
            extent={extent}
            pages={pages}
            query={query}
            selected={selected}
            onSelect={select}
            onOpen={open}
          />
        )}
      </section>
      <aside class="side" aria-label="Selected case">
        {row && (
          <Preview
            key={row.number}
            handle={preview}
            row={row}
            onOpen={() => open()}
            onDecided={() => settings.value.advance && select(selected + 1)}
          />
        )}
      </aside>
    </div>
  );
}

/** The lowest and the highest confidence of the run. */
function useExtent(run: Run): [number, number] {
  const { value } = useLoaded((signal) => api.curve({}, signal), [run.version]);
  return value && value.thresholds.length > 0 ? extentOf(value.thresholds) : [0, 1];
}

/** By how many rows a command moves. */
function stepOf(command: Command, page: number, total: number): number | null {
  const steps: Partial<Record<Command, number>> = {
    next: 1,
    previous: -1,
    "page-down": page,
    "page-up": -page,
    first: -total,
    last: total,
  };
  return steps[command] ?? null;
}

function merged(query: Query, change: Query): Query {
  return Object.fromEntries(Object.entries({ ...query, ...change }).filter(([, value]) => value !== ""));
}

/** Pages of the list that the query gives; begun anew when it changes, or when the run has grown. */
function usePages(query: Query, round: number, version: number): Pages {
  const [, redraw] = useState(0);
  const returned = useStore(returns);
  const { reviewer } = useStore(settings);
  const key = JSON.stringify([query, round, version, returned, reviewer]);
  const pages = useMemo(() => {
    const load = (offset: number, limit: number, signal: AbortSignal) =>
      api.cases({ ...query, reviewer, offset, limit }, signal);
    return new Pages(load, () => redraw((value) => value + 1));
  }, [key]);
  const shown = useRef(pages);
  useEffect(() => {
    const { at } = route.value;
    pages.want({ first: at, end: at + 1 });
    return () => pages.stop();
  }, [pages]);
  // What was shown stays until the new list has come: no flicker while typing, nothing lost while the server is gone.
  if (pages.total !== null || pages.error instanceof Refused || shown.current.total === null) shown.current = pages;
  return shown.current;
}

function EmptyList({ run, query }: { run: Run; query: Query }) {
  if (Object.keys(query).length > 0) {
    return (
      <Nothing title="No case is like that">
        <button type="button" onClick={() => go({ query: {}, at: 0 })}>
          Show all cases
        </button>
      </Nothing>
    );
  }
  return (
    <Nothing title={run.finished ? "This run has no cases" : "No case is scored yet"}>
      {!run.finished && <p>They appear here as they are scored.</p>}
    </Nothing>
  );
}
