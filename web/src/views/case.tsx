/** One case: the picture, what is known about it, the verdict; the next one is a key away. */

import { useRef } from "preact/hooks";
import type { Row, Run } from "../api";
import { useCommands } from "../commands";
import { api, go, log, returns, route, settings, undoOn } from "../desk";
import { anything, number } from "../format";
import { DecisionTag, Key, Loading, Nothing, Problem } from "../parts/basics";
import { useLoaded, useStore } from "../store";
import type { Opened } from "../viewer/layers";
import { Viewer } from "../viewer/viewer";
import { type Neighbours, neighbours } from "../virtual";
import { History, VerdictForm, type VerdictHandle } from "./verdict";
import { VERDICT_OF } from "./worklist";

export function CaseView({ run }: { run: Run }) {
  const here = useStore(route);
  const returned = useStore(returns);
  const wanted = here.number!;
  const { value, error } = useLoaded((signal) => api.case(wanted, {}, signal), [wanted, returned]);
  const around = useNeighbours(wanted, here.at);
  const form = useRef<VerdictHandle>(null);
  const opened = value?.number === wanted ? value : null;
  const step = (to: Neighbours<Row>["next"]) => to && go({ number: to.row.number, at: to.at });

  useCommands((command) => {
    if (command === "next") return void step(around.next);
    if (command === "previous") return void step(around.previous);
    const verdict = VERDICT_OF[command];
    if (verdict) return form.current?.decide(verdict);
    if (command === "comment") return form.current?.comment();
    if (command === "undo") return void undoOn(opened);
    return false;
  });

  if (error && !opened) return <Problem error={error} />;
  return (
    <div class="case" data-testid="case">
      <div class="case-stage">
        <CaseHead row={opened} around={around} onStep={step} />
        {!opened ? (
          <Loading what="Opening the case" />
        ) : opened.view ? (
          <Viewer key={opened.number} opened={opened as Opened} />
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
              key={opened.number}
              row={opened}
              handle={form}
              onDecided={() => settings.value.advance && step(around.next)}
            />
            <h3>Case</h3>
            <Facts row={opened} run={run} />
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

/** Asked for again after each verdict: a decided case may leave the list. */
function useNeighbours(wanted: number, at: number): Neighbours<Row> {
  const { query } = route.value;
  const entries = useStore(log).length;
  const offset = Math.max(0, at - 1);
  const { value } = useLoaded(
    async (signal) => {
      const { rows } = await api.cases(
        { ...query, reviewer: settings.value.reviewer, offset, limit: at - offset + 3 },
        signal,
      );
      return { wanted, rows };
    },
    [wanted, at, entries, JSON.stringify(query)],
  );
  return value?.wanted === wanted ? neighbours(value.rows, offset, at, wanted) : { previous: null, next: null };
}

function CaseHead({
  row,
  around,
  onStep,
}: {
  row: Row | null;
  around: Neighbours<Row>;
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
      {row && <DecisionTag decision={row.decision} />}
      <span class="grow" />
      <button
        type="button"
        class="quiet"
        data-testid="previous"
        disabled={!around.previous}
        onClick={() => onStep(around.previous)}
      >
        Previous <Key>k</Key>
      </button>
      <button
        type="button"
        class="quiet"
        data-testid="next"
        disabled={!around.next}
        onClick={() => onStep(around.next)}
      >
        Next <Key>j</Key>
      </button>
    </header>
  );
}

function Facts({ row, run }: { row: Row; run: Run }) {
  const facts: [string, string][] = [
    [`Confidence (${run.estimator})`, number(row.confidence)],
    ["Margin to the threshold", number(row.margin)],
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
