/** Whether the threshold still holds: confidences against calibration, drift, and what reviewers say. */

import type { Agreement, Monitoring, Run } from "../api";
import { api, go, log, returns } from "../desk";
import { count, number } from "../format";
import { Loading, Nothing, Problem, StructureChoice } from "../parts/basics";
import { Chart, linePath } from "../parts/chart";
import { useLoaded, useStore } from "../store";
import { useStructure } from "../structure";
import { AuditPanel } from "./audit";
import { quantiles, rollingMedian } from "../statistics";

export function MonitoringView({ run }: { run: Run }) {
  const [structure, setStructure] = useStructure(run);
  const returned = useStore(returns);
  const verdicts = useStore(log).length;
  const monitoring = useLoaded(
    async (signal) => ({ structure, ...(await api.monitoring({ structure }, signal)) }),
    [structure, run.version, returned, verdicts],
  );
  return (
    <div class="page monitoring" data-testid="monitoring-view">
      <StructureChoice run={run} structure={structure} onChange={setStructure} testid="monitoring-structure" />
      {monitoring.value?.structure === structure ? (
        <Panels {...monitoring.value} />
      ) : monitoring.error ? (
        <Problem error={monitoring.error} />
      ) : (
        <Loading what="Comparing with calibration" />
      )}
    </div>
  );
}

function Panels({ reference, new: fresh, left_out, drift, martingale, agreement, audit }: Monitoring) {
  return (
    <>
      <section class="panel" aria-labelledby="drift-title">
        <h2 id="drift-title">Confidence, case after case</h2>
        {drift && (
          <p
            class={`certificate ${drift.alarm ? "broken" : "holds"}`}
            role={drift.alarm ? "alert" : undefined}
            data-testid="drift"
          >
            {drift.text}
          </p>
        )}
        {left_out > 0 && (
          <p class="faint" data-testid="left-out">
            {count(left_out)} {left_out === 1 ? "case" : "cases"} of the calibration left out.
          </p>
        )}
        {fresh.length > 0 ? (
          <OverTime reference={reference} fresh={fresh} />
        ) : (
          <Nothing title="No case beyond those of the calibration">
            Cases that the policy was made with are left out here.
          </Nothing>
        )}
      </section>
      <section class="panel" aria-labelledby="martingale-title">
        <h2 id="martingale-title">Evidence against exchangeability</h2>
        {martingale && martingale.values.length > 0 ? (
          <Evidence {...martingale} />
        ) : (
          <Nothing title={reference.length > 0 ? "No case to watch yet" : "No calibration to compare with"}>
            {reference.length === 0 && "Start the desk with a policy that has its reference confidences beside it."}
          </Nothing>
        )}
      </section>
      {audit && <AuditPanel audit={audit} onOpen={(number) => go({ view: "case", number })} />}
      <section class="panel" aria-labelledby="agreement-title">
        <h2 id="agreement-title">Verdicts by confidence</h2>
        {agreement && agreement.bins.some((bin) => bin.accepted + bin.not_accepted > 0) ? (
          <AgreementChart {...agreement} />
        ) : (
          <Nothing title="No verdict yet">
            Verdicts of reviewers appear here against the confidence of their cases.
          </Nothing>
        )}
      </section>
    </>
  );
}

function OverTime({ reference, fresh }: { reference: number[]; fresh: number[] }) {
  const [low, middle, high] = quantiles(reference, [0.05, 0.5, 0.95]);
  const all = [...reference, ...fresh].filter(Number.isFinite);
  const [bottom = 0] = quantiles(all, [0.02]); // a few that are far below are drawn on the frame
  return (
    <>
      <ul class="legend">
        {reference.length > 0 && <li class="key-band">calibration, 5 to 95 %</li>}
        <li class="key-dots">cases, in the order of the table</li>
        <li class="key-coverage">their running median</li>
      </ul>
      <Chart
        label="Confidence of each case in the order of the table"
        testid="over-time"
        xDomain={[1, Math.max(2, fresh.length)]}
        yDomain={[Math.floor(20 * bottom - 0.2) / 20, 1]}
        xTitle="case"
        yTitle="confidence"
        xFormat={count}
        counts="x"
      >
        {({ x, y, left, right, bottom: bottomPx }) => (
          <>
            {low !== undefined && high !== undefined && (
              <rect class="band" x={left} width={right - left} y={y(high)} height={Math.max(1, y(low) - y(high))} />
            )}
            {middle !== undefined && <line class="limit" x1={left} x2={right} y1={y(middle)} y2={y(middle)} />}
            <path
              class="dots"
              d={fresh
                .map((value, i) => (Number.isFinite(value) ? `M${x(i + 1).toFixed(1)},${Math.min(y(value), bottomPx).toFixed(1)}h0` : ""))
                .join("")}
            />
            <path
              class="line coverage"
              d={linePath(
                fresh.map((_, i) => i + 1),
                rollingMedian(fresh, 15),
                x,
                y,
              )}
            />
          </>
        )}
      </Chart>
    </>
  );
}

function Evidence({ values, alarm_at }: { values: number[]; alarm_at: number }) {
  const highest = values.reduce((most, value) => Math.max(most, value), alarm_at);
  const lowest = values.reduce((least, value) => Math.min(least, value), 0);
  const hasAlarm = values.some((value) => value >= alarm_at);
  return (
    <>
      <p class={`certificate ${hasAlarm ? "broken" : "holds"}`} data-testid="martingale-text">
        <b>{hasAlarm ? "Alarm." : "Below the alarm."}</b> The wealth of a bet against “these cases are like those of the
        calibration”, as a power of ten; now {number(values.at(-1), 2)}, alarm at {number(alarm_at, 2)}.
      </p>
      <Chart
        label="Test martingale over cases, as a power of ten"
        testid="martingale"
        xDomain={[1, Math.max(2, values.length)]}
        yDomain={[Math.floor(lowest), Math.ceil(highest + 0.1)]}
        xTitle="case"
        yTitle="log₁₀ wealth"
        xFormat={count}
        counts="x"
      >
        {({ x, y, left, right }) => (
          <>
            <line class="alarm" x1={left} x2={right} y1={y(alarm_at)} y2={y(alarm_at)} />
            <path
              class="line coverage"
              d={linePath(
                values.map((_, i) => i + 1),
                values,
                x,
                y,
              )}
            />
          </>
        )}
      </Chart>
    </>
  );
}

function AgreementChart({ bins, auroc }: Agreement) {
  const highest = Math.max(1, ...bins.map((bin) => bin.accepted + bin.not_accepted));
  return (
    <>
      <p class="certificate" data-testid="auroc">
        {auroc == null ? (
          "Both kinds of verdicts are needed to say how well the confidence tells them apart."
        ) : (
          <>
            Of an accepted case and another one, the accepted case has the higher confidence with probability{" "}
            <b>{number(auroc, 2)}</b> (AUROC; 0.5 is chance).
          </>
        )}
      </p>
      <ul class="legend">
        <li class="key-accept">accepted</li>
        <li class="key-reject">rejected or to correct</li>
      </ul>
      <Chart
        label="Verdicts by confidence"
        testid="agreement"
        xDomain={[bins[0]!.low, bins.at(-1)!.high]}
        yDomain={[0, highest]}
        xTitle="confidence"
        yTitle="verdicts"
        counts="y"
      >
        {({ x, y }) =>
          bins.map((bin) => (
            <g key={bin.low}>
              <rect
                class="bar-accept"
                x={x(bin.low) + 1}
                width={Math.max(1, x(bin.high) - x(bin.low) - 2)}
                y={y(bin.accepted)}
                height={y(0) - y(bin.accepted)}
              />
              <rect
                class="bar-reject"
                x={x(bin.low) + 1}
                width={Math.max(1, x(bin.high) - x(bin.low) - 2)}
                y={y(bin.accepted + bin.not_accepted)}
                height={y(bin.accepted) - y(bin.accepted + bin.not_accepted)}
              />
            </g>
          ))
        }
      </Chart>
    </>
  );
}
