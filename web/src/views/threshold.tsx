/** The threshold: what another one would accept and defer, what it promises, what a budget of reviews catches. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { AtThreshold, Curve, Policy, Run } from "../api";
import { api, go, returns, settings } from "../desk";
import { count, hours, number, percent } from "../format";
import { Latest } from "../latest";
import { Choice, Figure, Loading, Nothing, Problem } from "../parts/basics";
import { Chart, linePath } from "../parts/chart";
import { extentOf, quantiles } from "../statistics";
import { useLoaded, useStore } from "../store";
import { BudgetPanel } from "./budget";

const STEPS = 1000;

export function ThresholdView({ run }: { run: Run }) {
  const [structure, setStructure] = useState(run.structures[0] ?? "");
  const returned = useStore(returns);
  const curve = useLoaded((signal) => api.curve({ structure }, signal), [structure, run.version, returned]);
  const policy = run.policies[structure] ?? run.policies[""] ?? null;
  return (
    <div class="page" data-testid="threshold-view">
      {run.structures.length > 1 && (
        <Choice
          label="Structure"
          testid="threshold-structure"
          value={structure}
          options={run.structures.map((name) => [name, name] as const)}
          onChange={setStructure}
        />
      )}
      {curve.value && curve.value.thresholds.length > 0 ? (
        <Explorer
          key={structure}
          curve={curve.value}
          policy={policy}
          structure={structure}
          usualMinutes={run.minutes}
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
  usualMinutes: number;
}

function Explorer({ curve, policy, structure, usualMinutes }: ExplorerProps) {
  const domain = useMemo(() => extentOf(curve.thresholds), [curve]);
  const [value, setValue] = useState(() => policy?.threshold ?? quantiles(curve.thresholds, [0.5])[0] ?? 0);
  const minutes = useStore(settings).minutes ?? usualMinutes;
  const { answer, error } = useAnswer(value, structure, minutes);
  const step = (domain[1] - domain[0]) / STEPS || 0.001;
  return (
    <section class="panel" aria-labelledby="threshold-title">
      <h2 id="threshold-title">Threshold</h2>
      <div class="explorer">
        <div class="explorer-chart">
          <Legend hasRisk={curve.risks !== null} hasPolicy={policy?.threshold != null} />
          <CurveChart curve={curve} domain={domain} value={value} policy={policy} onPick={setValue} />
          <input
            class="threshold-slider"
            type="range"
            aria-label="Threshold"
            data-testid="threshold-slider"
            min={domain[0]}
            max={domain[1]}
            step={step}
            value={value}
            onInput={(event) => setValue(Number(event.currentTarget.value))}
          />
          <div class="slider-line">
            <label for="threshold-value">Threshold</label>
            <input
              id="threshold-value"
              type="number"
              data-testid="threshold-value"
              min={domain[0]}
              max={domain[1]}
              step="any"
              value={Number(value.toFixed(4))}
              onChange={(event) =>
                Number.isFinite(event.currentTarget.valueAsNumber) && setValue(event.currentTarget.valueAsNumber)
              }
            />
            {policy?.threshold != null && (
              <button
                type="button"
                class="quiet"
                data-testid="threshold-policy"
                onClick={() => setValue(policy.threshold!)}
              >
                Back to the policy’s {number(policy.threshold, 4)}
              </button>
            )}
          </div>
        </div>
        <div class="explorer-numbers" aria-live="polite">
          {answer ? (
            <Numbers answer={answer} minutes={minutes} policy={policy} structure={structure} />
          ) : error ? (
            <Problem error={error} />
          ) : (
            <Loading what="Counting" />
          )}
          <button
            type="button"
            data-testid="list-at-threshold"
            onClick={() =>
              go({
                view: "worklist",
                at: 0,
                query: { threshold: String(value), decision: "defer", ...(structure && { structure }) },
              })
            }
          >
            List what this defers
          </button>
        </div>
      </div>
    </section>
  );
}

function useAnswer(
  value: number,
  structure: string,
  minutes: number,
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
  useEffect(() => latest.put({ value, structure, minutes }), [value, structure, minutes]);
  return state;
}

interface NumbersProps {
  answer: AtThreshold;
  minutes: number;
  policy: Policy | null;
  structure: string;
}

function Numbers({ answer, minutes, policy, structure }: NumbersProps) {
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
      <Certificate answer={answer} policy={policy} />
      <DriftNote structure={structure} />
    </>
  );
}

function Minutes({ minutes }: { minutes: number }) {
  return (
    <label class="inline-field">
      Minutes a case{" "}
      <input
        type="number"
        data-testid="minutes"
        min={0.1}
        max={600}
        step="any"
        value={minutes}
        onChange={(event) =>
          event.currentTarget.valueAsNumber > 0 && settings.update({ minutes: event.currentTarget.valueAsNumber })
        }
      />
    </label>
  );
}

/** Whether somebody may rely on it, and why. */
function Certificate({ answer, policy }: { answer: AtThreshold; policy: Policy | null }) {
  const { certified } = answer;
  if (!certified)
    return (
      <p class="certificate" data-testid="certified">
        <b>Not certified.</b> This run has no calibrated policy: these numbers are what its cases happen to give.
      </p>
    );
  const limit =
    certified.below_dice == null
      ? `risk at most ${number(certified.risk)}`
      : `at most ${percent(certified.risk)} of the accepted below a Dice of ${number(certified.below_dice, 2)}`;
  const promise = `${limit}, with probability ${percent(certified.probability, 0)}`;
  if (certified.holds && certified.below_dice == null && answer.low != null && answer.low > certified.risk) {
    return (
      <p class="certificate broken" data-testid="certified">
        <b>Promised, but not kept here:</b> {promise}. The cases of this run have a risk of {number(answer.risk)}: they
        are not like those of the calibration.
      </p>
    );
  }
  if (certified.holds) {
    return (
      <p class="certificate holds" data-testid="certified">
        <b>Certified:</b> {promise}.{" "}
        {!certified.tested && "Above the policy’s own threshold this rests on the risk not rising with the confidence."}
      </p>
    );
  }
  const why =
    certified.standing === "certified"
      ? `The promise (${promise}) needs a threshold of at least ${number(policy?.threshold, 4)}.`
      : policy?.text;
  return (
    <p class="certificate broken" data-testid="certified">
      <b>Not certified{certified.standing === "certified" ? " here" : ""}.</b> {why}
    </p>
  );
}

/** A promise is about cases like those of the calibration; drift says that these are others. */
function DriftNote({ structure }: { structure: string }) {
  const { value } = useLoaded((signal) => api.monitoring({ structure }, signal), [structure]);
  if (!value?.drift?.alarm) return null;
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
  onPick,
}: {
  curve: Curve;
  domain: [number, number];
  value: number;
  policy: Policy | null;
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
      yTitle="share, mean loss"
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
