/** One case: the picture, what is known about it, the verdict; the next one is a key away. */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Case, Row, Run } from "../api";
import { expectText, useCommands } from "../commands";
import { api, beginAnew, go, log, message, returns, route, settings, undoOn } from "../desk";
import { identityOf, keyOf } from "../log";
import { anything, margin, number, significant } from "../format";
import { DecisionTag, Key, Loading, Nothing, Problem } from "../parts/basics";
import type { Query } from "../route";
import { useLoaded, useStore } from "../store";
import { type Trial, trialOf } from "../trial";
import type { Opened } from "../viewer/layers";
import { Viewer } from "../viewer/viewer";
import { type Neighbours, neighbours } from "../virtual";
import { TrialNote } from "./trial";
import { History, VerdictForm, type VerdictHandle } from "./verdict";
import { VERDICT_OF } from "./worklist";

export function CaseView({ run }: { run: Run }) {
  const here = useStore(route);
  const returned = useStore(returns);
  const wanted = here.number!;
  const { threshold } = here.query;
  const { value, error } = useLoaded(
    (signal) => api.case(wanted, { threshold }, signal),
    [wanted, threshold, returned, run.version],
  );
  useSameCase(value);
  const around = useNeighbours(wanted, here.at);
  const form = useRef<VerdictHandle>(null);
  const opened = value?.number === wanted ? value : null;
  const trial = trialOf(here.query, run, opened?.structure);
  const step = (to: Neighbours<Row>["next"]) => to && go({ number: to.row.number, at: to.at });
  const goOn = useGoingOn(around, () => step(around?.next ?? null));

  const writeLater = useWritingLater(form, opened);
  useCommands((command) => {
    if (command === "next") return around ? void step(around.next) : goOn(wanted); // once it is known
    if (command === "previous") return void step(around?.previous ?? null);
    const verdict = VERDICT_OF[command];
    const isShown = form.current?.number === route.value.number; // the next case may not be drawn yet
    if (verdict) return isShown ? form.current?.decide(verdict) : undefined;
    if (command === "comment") return isShown ? form.current?.comment() : writeLater();
    if (command === "undo") return isShown ? void undoOn(opened) : undefined;
    return false;
  });

  if (error && !opened) return <Problem error={error} />;
  return (
    <div class="case" data-testid="case">
      <div class="case-stage">
        <CaseHead row={opened} trial={trial} hasStructures={run.structures.length > 1} around={around} onStep={step} />
        <TrialNote trial={trial} run={run} />
        {!opened ? (
          <Loading what="Opening the case" />
        ) : opened.view ? (
          <Viewer key={identityOf(opened)} opened={opened as Opened} />
        ) : (
          <Nothing title="The files of this case cannot be opened" testid="case-problem">
            <p>{opened.problem}</p>
          </Nothing>
        )}
      </div>
      <aside class="side" aria-label="About the case">
        {opened && (
          <>
            <VerdictForm
              key={identityOf(opened)}
              row={opened}
              handle={form}
              onDecided={() => goOn(opened.number)}
            />
            <h3>Case</h3>
            <Facts row={opened} run={run} trial={trial} />
            <h3>History</h3>
            <History row={opened} />
            <h3>Scores</h3>
            <Scores scores={opened.scores} />
          </>
        )}
      </aside>
    </div>
  );
}

/** Numbers are others once the desk was started anew: nobody is led to another case in the middle of a look. */
function useSameCase(opened: Case | null): void {
  const known = useRef<Case | null>(null);
  useEffect(() => {
    const before = known.current;
    known.current = opened;
    if (!opened || before?.number !== opened.number || keyOf(before) === keyOf(opened)) return;
    message.set({ kind: "problem", text: `The desk was started anew. Choose ${before.case} again.` });
    beginAnew();
  }, [opened]);
}

/** Go on from a decided case, as soon as it is known to which, unless the reviewer has gone elsewhere. */
function useGoingOn(around: Neighbours<Row> | null, next: () => void): (from: number) => void {
  const from = useRef<number | null>(null);
  const tryIt = () => {
    if (from.current === null || !around) return;
    if (from.current === route.value.number && !isWriting()) next();
    from.current = null;
  };
  useLayoutEffect(tryIt, [around]);
  useLayoutEffect(() => {
    const written = () => isWriting() && (from.current = null); // who begins to write stays
    addEventListener("focusin", written);
    return () => removeEventListener("focusin", written);
  }, []);
  return (number) => {
    from.current = number;
    tryIt();
  };
}

/** Who asks for the comment before the case has come gets it then; what is typed until then decides nothing. */
function useWritingLater(form: RefObject<VerdictHandle>, opened: Case | null): () => void {
  const isAsked = useRef(false);
  useLayoutEffect(() => {
    if (!opened || !isAsked.current) return;
    isAsked.current = false;
    form.current?.comment();
  }, [opened]);
  return () => {
    isAsked.current = true;
    expectText();
  };
}

/** Whether somebody writes: nothing moves away under a comment. */
function isWriting(): boolean {
  return document.activeElement?.tagName === "TEXTAREA";
}

/** Asked for again after each verdict: a decided case may leave the list. Null until they have come. */
function useNeighbours(wanted: number, at: number): Neighbours<Row> | null {
  const { query } = route.value;
  const entries = useStore(log).length;
  const { value } = useLoaded(
    async (signal) => ({ wanted, ...(await rowsAround(wanted, at, query, signal)) }),
    [wanted, at, entries, JSON.stringify(query)],
  );
  const isKnown = value?.wanted === wanted;
  useEffect(() => {
    if (isKnown && value.at !== at) go({ at: value.at }, true); // where it is now, for when it leaves the list
  }, [value]);
  return useMemo(
    () => (isKnown ? neighbours(value.rows, value.offset, value.at, wanted) : null),
    [isKnown, value, wanted],
  );
}

/** Rows around a case, wherever it is in the list by now; around where it was if it has left the list. */
async function rowsAround(number: number, at: number, query: Query, signal: AbortSignal) {
  const ask = (offset: number) =>
    api.cases({ ...query, reviewer: settings.value.reviewer, offset, limit: 4, find: number }, signal);
  const before = (place: number) => Math.max(0, place - 1);
  const { rows, place } = await ask(before(at));
  if (place === null || place === at) return { rows, at, offset: before(at) };
  return { rows: (await ask(before(place))).rows, at: place, offset: before(place) };
}

function CaseHead({
  row,
  trial,
  hasStructures,
  around,
  onStep,
}: {
  row: Row | null;
  trial: Trial | null;
  hasStructures: boolean;
  around: Neighbours<Row> | null;
  onStep: (to: Neighbours<Row>["next"]) => void;
}) {
  return (
    <header class="case-head">
      <button type="button" class="quiet" data-testid="back" onClick={() => go({ view: "worklist", number: null })}>
        ← Worklist <Key>Esc</Key>
      </button>
      <h2 class="clip" title={row?.case} data-testid="case-name">
        {row?.case ?? "…"}
      </h2>
      {row && hasStructures && <span class="faint clip">{row.structure}</span>}
      {row && <DecisionTag decision={row.decision} isTrial={trial !== null} />}
      <span class="grow" />
      <button
        type="button"
        class="quiet"
        data-testid="previous"
        disabled={!around?.previous}
        onClick={() => onStep(around?.previous ?? null)}
      >
        Previous <Key>k</Key>
      </button>
      <button
        type="button"
        class="quiet"
        data-testid="next"
        disabled={!around?.next}
        onClick={() => onStep(around?.next ?? null)}
      >
        Next <Key>j</Key>
      </button>
    </header>
  );
}

function Facts({ row, run, trial }: { row: Row; run: Run; trial: Trial | null }) {
  const facts: [string, string][] = [
    [`Confidence (${run.estimator})`, number(row.confidence)],
    [trial ? `Margin to the tried ${significant(trial.value)}` : "Margin to the threshold", margin(row.margin)],
    ...(row.dice != null ? [["Dice", number(row.dice)] as [string, string]] : []),
    ["Structure", row.structure],
    ["Set", row.set ?? ""],
    ["Group", row.group ?? ""],
  ];
  return (
    <dl class="pairs">
      {facts
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="clip" title={value}>
              {value}
            </dd>
          </div>
        ))}
    </dl>
  );
}

function Scores({ scores }: { scores: Record<string, unknown> }) {
  return (
    <dl class="pairs scores" data-testid="scores">
      {Object.entries(scores).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="clip" title={String(value)}>
            {anything(value)}
          </dd>
        </div>
      ))}
    </dl>
  );
}
