/** The threshold: what another one would accept and defer, what it promises, what a budget of reviews catches. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { AtThreshold, Curve, Policy, Run } from "../api";
import { api, go, lastOpened, returns, settings, tried } from "../desk";
import { SIGNIFICANT, count, hours, number, percent } from "../format";
import { Latest } from "../latest";
import { Figure, Loading, Nothing, Problem, StructureChoice } from "../parts/basics";
import { Chart, linePath } from "../parts/chart";
import { NumberField } from "../parts/number";
import { extentOf, nearest, quantiles, stopsOf } from "../statistics";
import { useLoaded, useStore } from "../store";
import { useStructure } from "../structure";
import { policyOf } from "../trial";
import { BudgetPanel } from "./budget";
import { Certificate, type Drift } from "./certificate";

export function ThresholdView({ run }: { run: Run }) {
  const [structure, setStructure] = useStructure(run);
  const returned = useStore(returns);
  const loaded = useLoaded(
    async (signal) => ({ structure, ...(await api.curve({ structure }, signal)) }),
    [structure, run.version, returned],
  );
  const curve = { ...loaded, value: loaded.value?.structure === structure ? loaded.value : null };
  const policy = policyOf(run, structure);
  return (
    <div class="page" data-testid="threshold-view">
      <StructureChoice run={run} structure={structure} onChange={setStructure} testid="threshold-structure" />
      {curve.value && curve.value.thresholds.length > 0 ? (
        <Explorer
          key={structure}
          curve={curve.value}
          policy={policy}
          structure={structure}
          run={run}
        />
      ) : curve.error ? (
        <Problem error={curve.error} />
      ) : curve.loading ? (
        <Loading what="Reading the curve" />
      ) : (
        <Nothing title="There is no confidence to set a threshold on" />
      )}
      <BudgetPanel run={run} structure={structure} />
    </div>
  );
}

interface ExplorerProps {
  curve: Curve;
  policy: Policy | null;
  structure: string;
  run: Run;
}

function Explorer({ curve, policy, structure, run }: ExplorerProps) {
  const domain = useMemo(() => extentOf(curve.thresholds), [curve]);
  const stops = useMemo(() => stopsOf(curve.thresholds, policy?.threshold), [curve, policy]);
  const [value, setValue] = useState(
    () => tried.get(structure) ?? policy?.threshold ?? quantiles(curve.thresholds, [0.5])[0] ?? 0,
  );
  useEffect(() => void tried.set(structure, value), [value]);
  const minutes = useStore(settings).minutes ?? run.minutes;
  const { answer, error } = useAnswer(value, structure, minutes, run.version);
  return (
    <section class="panel" aria-labelledby="threshold-title">
      <h2 id="threshold-title">Threshold</h2>
      <div class="explorer">
        <div class="explorer-chart">
          <Legend hasRisk={curve.risks !== null} hasPolicy={policy?.threshold != null} />
          <CurveChart
            curve={curve}
            domain={domain}
            value={value}
            policy={policy}
            loss={run.loss.label}
            onPick={setValue}
          />
          <div class="slider-line">
            <label for="threshold-value">Threshold</label>
            <NumberField
              id="threshold-value"
              data-testid="threshold-value"
              min={domain[0]}
              max={domain[1]}
              step="any"
              value={Number(value.toFixed(SIGNIFICANT))}
              onChange={(typed) => setValue(meant(typed, policy))}
            />
            <span class="faint">accept all</span>
            <input
              class="threshold-slider"
              type="range"
              aria-label="Threshold"
              data-testid="threshold-slider"
              aria-valuetext={number(value, 6)}
              min={0}
              max={stops.length - 1}
              value={nearest(stops, value)}
              onInput={(event) => setValue(stops[Number(event.currentTarget.value)]!)}
            />
            <span class="faint">the surest only</span>
            {policy?.threshold != null && (
              <button
                type="button"
                class="quiet"
                data-testid="threshold-policy"
                onClick={() => setValue(policy.threshold!)}
              >
                Back to the policy’s {number(policy.threshold, SIGNIFICANT)}
              </button>
            )}
          </div>
        </div>
        <div class="explorer-numbers" aria-live="polite">
          {answer ? (
            <Numbers answer={answer} minutes={minutes} policy={policy} structure={structure} run={run} />
          ) : error ? (
            <Problem error={error} />
          ) : (
            <Loading what="Counting" />
          )}
          <button
            type="button"
            data-testid="list-at-threshold"
            onClick={() => {
              lastOpened.set(null); // it begins at the top
              go({
                view: "worklist",
                at: 0,
                query: { threshold: String(value), decision: "defer", ...(structure && { structure }) },
              });
            }}
          >
            List what this defers
          </button>
        </div>
      </div>
    </section>
  );
}

/** The threshold that somebody types: the policy's own if it is the same in the digits that are shown. */
function meant(typed: number, policy: Policy | null): number {
  const own = policy?.threshold;
  return own != null && typed.toFixed(SIGNIFICANT) === own.toFixed(SIGNIFICANT) ? own : typed;
}

function useAnswer(
  value: number,
  structure: string,
  minutes: number,
  version: string,
): { answer: AtThreshold | null; error: Error | null } {
  const [state, setState] = useState<{ answer: AtThreshold | null; error: Error | null }>({
    answer: null,
    error: null,
  });
  const latest = useMemo(
    () =>
      new Latest(
        (query: { value: number; structure: string; minutes: number }) => api.threshold(query),
        (answer) => setState({ answer, error: null }),
        (error) => setState((before) => ({ ...before, error })),
      ),
    [],
  );
  const returned = useStore(returns);
  useEffect(() => latest.put({ value, structure, minutes }), [value, structure, minutes, version, returned]);
  return state;
}

interface NumbersProps {
  answer: AtThreshold;
  minutes: number;
  policy: Policy | null;
  structure: string;
  run: Run;
}

function Numbers({ answer, minutes, policy, structure, run }: NumbersProps) {
  const drift = useDrift(structure, run.version);
  const interval = answer.low != null && answer.high != null ? `${number(answer.low)} to ${number(answer.high)}` : "";
  return (
    <>
      <dl class="figures">
        <Figure label="Accepted" testid="accepted" tone="good" value={count(answer.accepted)} />
        <Figure label="Deferred" testid="deferred" tone="warn" value={count(answer.deferred)} />
        <Figure label="No finding" testid="no-finding" value={count(answer.no_finding)} />
        <Figure label="Coverage" testid="coverage" value={percent(answer.coverage)} />
        <Figure label="Risk of accepted" testid="risk" value={number(answer.risk)} note={interval} />
        <Figure label="Review" testid="hours" value={hours(answer.hours)} note={`at ${minutes} min a case`} />
      </dl>
      <Minutes minutes={minutes} />
      <Certificate answer={answer} policy={policy} hasPolicies={Object.keys(run.policies).length > 0} drift={drift} />
      <DriftNote drift={drift} hasPolicy={policy !== null} />
    </>
  );
}

function Minutes({ minutes }: { minutes: number }) {
  return (
    <label class="inline-field">
      Minutes a case{" "}
      <NumberField
        data-testid="minutes"
        min={0.1}
        max={600}
        step="any"
        value={minutes}
        onChange={(typed) => typed > 0 && settings.update({ minutes: typed })}
      />
    </label>
  );
}

function useDrift(structure: string, version: string): Drift {
  const returned = useStore(returns);
  const { value, error } = useLoaded(
    async (signal) => ({ structure, ...(await api.monitoring({ structure }, signal)) }),
    [structure, version, returned],
  );
  if (error) return "failed";
  if (value?.structure !== structure) return "asked";
  const { drift, martingale } = value;
  const isBetLost = martingale?.values.some((wealth) => wealth >= martingale.alarm_at);
  if (drift?.alarm || isBetLost) return "alarm";
  return drift ? "none" : "unchecked";
}

/** A promise is about cases like those of the calibration; drift says that these are others. */
function DriftNote({ drift, hasPolicy }: { drift: Drift; hasPolicy: boolean }) {
  if (drift === "unchecked")
    return (
      <p class="certificate" data-testid="drift-note">
        {hasPolicy
          ? "Not checked for drift: there are no new cases, or the confidences of the calibration are not known. Cases that the policy was made with are no test of it."
          : "Not checked for drift: without a policy there is no calibration to compare with."}
      </p>
    );
  if (drift === "failed")
    return (
      <p class="certificate" data-testid="drift-note">
        Whether the new cases are like those of the calibration could not be found out: the server did not tell.
      </p>
    );
  if (drift !== "alarm") return null;
  return (
    <p class="certificate broken" data-testid="drift-note">
      <b>Drift:</b> confidences differ from those of the calibration.{" "}
      <button type="button" class="link" onClick={() => go({ view: "monitoring" })}>
        See Monitoring
      </button>
    </p>
  );
}

function Legend({ hasRisk, hasPolicy }: { hasRisk: boolean; hasPolicy: boolean }) {
  return (
    <ul class="legend">
      <li class="key-coverage">coverage</li>
      {hasRisk && <li class="key-risk">risk of the accepted</li>}
      {hasPolicy && <li class="key-policy">policy</li>}
    </ul>
  );
}

function CurveChart({
  curve,
  domain,
  value,
  policy,
  loss,
  onPick,
}: {
  curve: Curve;
  domain: [number, number];
  value: number;
  policy: Policy | null;
  loss: string;
  onPick: (value: number) => void;
}) {
  const limit = policy?.threshold;
  return (
    <Chart
      label="Coverage and risk by threshold"
      testid="curve"
      xDomain={domain}
      yDomain={[0, 1]}
      xTitle="threshold on the confidence"
      yTitle={`share, mean loss (${loss})`}
      onPick={onPick}
    >
      {({ x, y, top, bottom }) => (
        <>
          <path class="line coverage" d={linePath(curve.thresholds, curve.coverages, x, y)} />
          {curve.risks && <path class="line risk" d={linePath(curve.thresholds, curve.risks, x, y)} />}
          {limit != null && limit >= domain[0] && limit <= domain[1] && (
            <line class="limit" x1={x(limit)} x2={x(limit)} y1={top} y2={bottom} />
          )}
          <line class="here" x1={x(value)} x2={x(value)} y1={top} y2={bottom} />
        </>
      )}
    </Chart>
  );
}
