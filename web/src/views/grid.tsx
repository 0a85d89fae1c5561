/** The rows of the worklist; only those on the screen are in the page. */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Row, Run } from "../api";
import { api, go, log, settings, standing } from "../desk";
import { count, margin, number } from "../format";
import type { Pages } from "../pages";
import { DecisionTag, VerdictTag } from "../parts/basics";
import type { Query } from "../route";
import { useLoaded, useStore } from "../store";
import { scrollToShow, visibleRows } from "../virtual";
import { type Column, ariaSort, columnsOf, sortedBy } from "./columns";

const ROW_HEIGHT = 30;
const HEAD_HEIGHT = 29;

export interface GridHandle {
  rowsVisible: () => number;
}

interface GridProps {
  run: Run;
  /** From where to where bars of confidences go. */
  range: [number, number];
  /** Whether another threshold than the policy's decides. */
  isTrial: boolean;
  pages: Pages;
  query: Query;
  selected: number;
  /** Number of the selected row; it may have left the list. */
  chosen: number | null;
  /** Whether another list is asked for and has not come. */
  isWaiting: boolean;
  onSelect: (index: number) => void;
  onOpen: (index: number) => void;
  handle: RefObject<GridHandle>;
}

export function Grid({ run, range, isTrial, pages, query, selected, chosen, isWaiting, onSelect, onOpen, handle }: GridProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [scrollTop, height] = useScroll(scroller);
  const columns = columnsOf(run);
  const total = pages.total ?? 0;
  const window = visibleRows(scrollTop, height, ROW_HEIGHT, total);
  const decided = useDecided(run);
  handle.current = { rowsVisible: () => Math.max(1, Math.floor(height / ROW_HEIGHT) - 1) };
  useEffect(() => pages.want(window), [pages, window.first, window.end]);
  useLayoutEffect(() => {
    if (scroller.current && height > 0)
      scroller.current.scrollTop = scrollToShow(selected, scroller.current.scrollTop, height, ROW_HEIGHT);
  }, [selected, height > 0, total, pages.query]);

  const rows = Array.from({ length: window.end - window.first }, (_, i) => window.first + i);
  return (
    <>
      <div
        class="grid"
        role="grid"
        ref={scroller}
        aria-label="Cases"
        aria-busy={isWaiting}
        aria-rowcount={total + 1}
        aria-colcount={columns.length}
        tabIndex={0}
        aria-activedescendant={selected >= window.first && selected < window.end ? `row-${selected}` : undefined}
        data-testid="grid"
      >
        <div class="heads" role="rowgroup">
          <div class="row head" role="row" aria-rowindex={1}>
            {columns.map((column) => (
              <Head key={column.name} column={column} query={query} />
            ))}
          </div>
        </div>
        <div role="rowgroup" data-testid="rows">
          <Spacer height={window.first * ROW_HEIGHT} />
          {rows.map((index) => (
            <Line
              key={index}
              index={index}
              row={pages.row(index)}
              range={range}
              isTrial={isTrial}
              columns={columns}
              isSelected={index === selected && (chosen ?? pages.row(index)?.number) === pages.row(index)?.number}
              onSelect={onSelect}
              onOpen={onOpen}
            />
          ))}
          <Spacer height={(total - window.end) * ROW_HEIGHT} />
        </div>
      </div>
      <p class="foot" aria-hidden="true">
        {count(Math.min(selected + 1, total))} of {count(total)}
        <span>{count(decided)} decided</span>
      </p>
    </>
  );
}

/** How many cases of the run have a verdict that holds; verdicts of others appear as they come. */
function useDecided(run: Run): number | null {
  const entries = useStore(log).length;
  const { value } = useLoaded(
    (signal) => api.cases({ verdict: "decided", limit: 0 }, signal),
    [entries, run.version],
  );
  return value?.total ?? null;
}

function Spacer({ height }: { height: number }) {
  return <div role="presentation" style={{ height: `${Math.max(0, height)}px` }} />;
}

function Head({ column, query }: { column: Column; query: Query }) {
  const order = ariaSort(column, query);
  const sign = order === "ascending" ? "▴" : order === "descending" ? "▾" : "";
  const sort = () => go({ query: cleaned({ ...query, ...sortedBy(column, query) }), at: 0 }, true);
  return (
    <div class={`cell col-${column.name} ${column.isNumber ? "number" : ""}`} role="columnheader" aria-sort={order}>
      {column.sort ? (
        <button type="button" class="sort" tabIndex={0} data-testid={`sort-${column.name}`} onClick={sort}>
          {column.title} <span aria-hidden="true">{sign}</span>
        </button>
      ) : (
        column.title
      )}
    </div>
  );
}

function cleaned(query: Query): Query {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ""));
}

interface LineProps {
  index: number;
  row: Row | null;
  range: [number, number];
  isTrial: boolean;
  columns: Column[];
  isSelected: boolean;
  onSelect: (index: number) => void;
  onOpen: (index: number) => void;
}

function Line({ index, row, range, isTrial, columns, isSelected, onSelect, onOpen }: LineProps) {
  const place = { id: `row-${index}`, role: "row", "aria-rowindex": index + 2, "aria-selected": isSelected } as const;
  if (!row)
    return (
      <div class="row coming" {...place}>
        <div class="cell col-case" role="gridcell">
          …
        </div>
      </div>
    );
  return (
    <div
      {...place}
      class={`row is-${(row.decision || "open").replace(" ", "-")} ${isSelected ? "selected" : ""}`}
      data-testid="row"
      data-number={row.number}
      onClick={() => onSelect(index)}
      onDblClick={() => onOpen(index)}
    >
      {columns.map((column) => (
        <div key={column.name} role="gridcell" class={`cell col-${column.name} ${column.isNumber ? "number" : ""}`}>
          <Cell column={column} row={row} range={range} isTrial={isTrial} />
        </div>
      ))}
    </div>
  );
}

interface CellProps {
  column: Column;
  row: Row;
  range: [number, number];
  isTrial: boolean;
}

function Cell({ column, row, range, isTrial }: CellProps) {
  switch (column.name) {
    case "confidence":
      return (
        <>
          <Meter value={row.confidence} range={range} />
          {number(row.confidence)}
        </>
      );
    case "margin":
      return (
        <>{margin(row.margin)}</>
      );
    case "dice":
      return <>{number(row.dice)}</>;
    case "decision":
      return <DecisionTag decision={row.decision} isTrial={isTrial} />;
    case "verdict":
      return <Verdicts row={row} />;
    default:
      return (
        <span class="clip" title={row[column.name] ?? ""}>
          {row[column.name]}
        </span>
      );
  }
}

/** A confidence as a bar, which is full at the end of its range. */
function Meter({ value, range: [low, high] }: { value: number | null; range: [number, number] }) {
  const share = value === null ? 0 : Math.min(Math.max((value - low) / (high - low || 1), 0), 1);
  const isWhole = low === 0 && high === 1;
  const title = isWhole
    ? "From 0 to 1"
    : `From ${number(low)} to ${number(high)}, the lowest and the highest confidence of this run`;
  return (
    <span class="meter" aria-hidden="true" title={title}>
      <span style={{ width: `${100 * share}%` }} />
    </span>
  );
}

function Verdicts({ row }: { row: Row }) {
  const me = settings.value.reviewer;
  const mineFirst = standing()
    .of(row)
    .toSorted((a, b) => Number(b.reviewer === me) - Number(a.reviewer === me));
  return (
    <span class="clip">
      {mineFirst.map((entry) => (
        <VerdictTag key={entry.id} entry={entry} me={me} />
      ))}
    </span>
  );
}

/** How far the list is scrolled, and the height below its head, which stays. */
function useScroll(scroller: RefObject<HTMLDivElement>): [number, number] {
  const [place, setPlace] = useState<[number, number]>([0, 0]);
  useLayoutEffect(() => {
    const element = scroller.current!;
    const measure = () => setPlace([element.scrollTop, element.clientHeight - HEAD_HEIGHT]);
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    measure();
    return () => {
      watcher.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);
  return place;
}
