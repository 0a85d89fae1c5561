/** The worklist: which cases wait, the most doubtful first; a preview and the verdict beside it. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Refused, type Run, type Verdict } from "../api";
import { useCommands } from "../commands";
import { api, go, lastOpened, returns, route, settings, undoOn } from "../desk";
import { count } from "../format";
import type { Command } from "../keys";
import { identityOf } from "../log";
import { Pages } from "../pages";
import { Loading, Nothing, Problem } from "../parts/basics";
import type { Query, Route } from "../route";
import { Selection } from "../selection";
import { extentOf, meterRange } from "../statistics";
import { useLoaded, useStore } from "../store";
import { trialOf } from "../trial";
import { clamp } from "../virtual";
import { AlarmNote } from "./alarm";
import { Filters } from "./filters";
import { Grid, type GridHandle } from "./grid";
import { Preview } from "./preview";
import { TrialNote } from "./trial";
import type { VerdictHandle } from "./verdict";

export const VERDICT_OF: Partial<Record<Command, Verdict>> = { accept: "accept", reject: "reject", correct: "correct" };

export function Worklist({ run }: { run: Run }) {
  const here = useStore(route);
  const { query } = here;
  const [round, again] = useState(0);
  const selection = useMemo(() => new Selection(), []);
  const pages = usePages(query, selection, [round, run.version]);
  const range = useRange(run);
  const trial = trialOf(query, run);
  const grid = useRef<GridHandle>(null);
  const preview = useRef<VerdictHandle>(null);
  const total = pages.total ?? 0;
  useSelected(selection, pages, here, () => again((value) => value + 1));
  const { index: selected, row } = selection;
  const select = (index: number) => {
    selection.choose(pages, clamp(index, 0, total - 1));
    go({ at: selection.index }, true);
  };
  const move = (step: number) => {
    if (isOutdated(pages, query)) return; // its rows are no longer asked for
    const isNext = step > 0 && selection.isGone(pages); // what came into its place is the next one
    select(selection.index + step - (isNext ? 1 : 0));
  };
  const open = () => selection.row && go({ view: "case", number: selection.row.number, at: selection.index });

  /** Whether the selected case is the one that the reviewer sees: it may not be drawn yet. */
  const isShown = () => preview.current?.number === selection.row?.number;

  useCommands((command) => {
    const step = stepOf(command, grid.current?.rowsVisible() ?? 10, total);
    if (step !== null) return move(step);
    const verdict = VERDICT_OF[command];
    if (verdict) return isShown() ? preview.current?.decide(verdict) : undefined;
    if (command === "open") return void open();
    if (command === "undo") return isShown() ? void undoOn(selection.row) : undefined;
    if (command === "comment") return isShown() ? preview.current?.comment() : undefined;
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
          onChange={(change) => go({ query: merged(route.value.query, change), at: 0 }, true)} // as it is by then
          onRefresh={() => again((value) => value + 1)}
        />
        <AlarmNote run={run} />
        <TrialNote trial={trial} run={run} />
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
            range={range}
            isTrial={trial !== null}
            pages={pages}
            query={query}
            selected={selected}
            chosen={row?.number ?? null}
            isWaiting={isOutdated(pages, query)}
            onSelect={select}
            onOpen={(index) => {
              const target = pages.row(index);
              if (target) go({ view: "case", number: target.number, at: index });
            }}
          />
        )}
      </section>
      <aside class="side" aria-label="Selected case">
        {row && (
          <Preview
            key={identityOf(row)}
            handle={preview}
            row={row}
            trial={trial}
            isGone={selection.isGone(pages)}
            onOpen={() => void open()}
            onDecided={() => selection.row?.number === row.number && move(1)}
          />
        )}
      </aside>
    </div>
  );
}

/** From where to where the bar of a confidence goes. */
function useRange(run: Run): [number, number] {
  const { value } = useLoaded((signal) => api.curve({}, signal), [run.version]);
  return value && value.thresholds.length > 0 ? meterRange(extentOf(value.thresholds)) : [0, 1];
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

/** Where the selected case is in the list as it is now; the address follows it. */
function useSelected(selection: Selection, pages: Pages, { query, at }: Route, onLost: () => void): void {
  const isWaiting = isOutdated(pages, query);
  if (pages.total && !isWaiting) selection.update(pages, at);
  else if (pages.total === 0) selection.choose(pages, 0); // nothing, where there is nothing
  useLayoutEffect(() => {
    if (!pages.total || isWaiting) return;
    pages.place = null;
    lastOpened.set(null);
    if (selection.index !== at) go({ at: selection.index }, true);
    if (selection.mustAskAgain(pages)) onLost();
  });
}

/** Whether what is shown is the list of before: the one that is asked for now has not come. */
function isOutdated(pages: Pages, query: Query): boolean {
  return pages.query !== JSON.stringify(query);
}

/** Pages of the list that the query gives; begun anew when it changes, or when the run has grown. */
function usePages(query: Query, selection: Selection, rounds: (number | string)[]): Pages {
  const [, redraw] = useState(0);
  const returned = useStore(returns);
  const { reviewer } = useStore(settings);
  const asked = JSON.stringify(query); // who asks makes it no other list: what is selected stays so
  const pages = useMemo(() => {
    const find = selection.row?.number ?? lastOpened.value;
    const load = (offset: number, limit: number, signal: AbortSignal) =>
      api.cases({ ...query, reviewer, offset, limit, find }, signal);
    return new Pages(load, () => redraw((value) => value + 1), asked, find);
  }, [asked, reviewer, returned, ...rounds]);
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
