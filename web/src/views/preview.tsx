/** The selected case beside the worklist: small picture, numbers, verdict. */

import type { RefObject } from "preact";
import type { Row } from "../api";
import { api } from "../desk";
import { margin, number } from "../format";
import { identityOf } from "../log";
import { DecisionTag, Key, Loading } from "../parts/basics";
import { useLoaded } from "../store";
import type { Trial } from "../trial";
import type { Opened } from "../viewer/layers";
import { Thumbnail } from "../viewer/thumbnail";
import { History, VerdictForm, type VerdictHandle } from "./verdict";

interface PreviewProps {
  row: Row;
  /** What decides in place of the policy; null where the policy does. */
  trial: Trial | null;
  /** Whether it has left the list meanwhile. */
  isGone: boolean;
  onOpen: () => void;
  onDecided: () => void;
  handle: RefObject<VerdictHandle>;
}

export function Preview({ row, trial, isGone, onOpen, onDecided, handle }: PreviewProps) {
  const opened = useLoaded((signal) => quietly(signal, () => api.case(row.number, {}, signal)), [identityOf(row)]);
  return (
    <>
      <header class="side-head">
        <h2 class="clip" title={row.case} data-testid="preview-case">
          {row.case}
        </h2>
        <DecisionTag decision={row.decision} isTrial={trial !== null} />
      </header>
      {isGone && (
        <p class="faint" role="status" data-testid="gone">
          This case is no longer in the list.
        </p>
      )}
      <div class="thumbnail">
        {opened.value?.view ? (
          <Thumbnail opened={opened.value as Opened} />
        ) : opened.loading ? (
          <Loading what="Opening" />
        ) : (
          <p class="faint">{opened.value?.problem ?? opened.error?.message ?? "There is no picture of this case."}</p>
        )}
        <button type="button" class="open" data-testid="open" onClick={onOpen}>
          Open <Key>Enter</Key>
        </button>
      </div>
      <dl class="facts">
        <div>
          <dt>Confidence</dt>
          <dd>{number(row.confidence)}</dd>
        </div>
        <div>
          <dt>Margin</dt>
          <dd>{margin(row.margin)}</dd>
        </div>
        {row.dice != null && (
          <div>
            <dt>Dice</dt>
            <dd>{number(row.dice)}</dd>
          </div>
        )}
        {row.structure && (
          <div>
            <dt>Structure</dt>
            <dd>{row.structure}</dd>
          </div>
        )}
      </dl>
      <VerdictForm row={row} onDecided={onDecided} handle={handle} />
      <h3>History</h3>
      <History row={row} />
    </>
  );
}

const REST_MS = 120;

/** Wait a moment first: whoever holds down an arrow key wants no picture of every row in passing. */
async function quietly<T>(signal: AbortSignal, load: () => Promise<T>): Promise<T> {
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  signal.throwIfAborted();
  return load();
}
