/** "With so many reviews a day, what do we catch?" */

import { useState } from "preact/hooks";
import type { Budget, Run } from "../api";
import { api, returns, settings } from "../desk";
import { count, hours, number, percent } from "../format";
import { Figure, Loading, Problem } from "../parts/basics";
import { NumberField } from "../parts/number";
import { useLoaded, useStore } from "../store";

export function BudgetPanel({ run, structure }: { run: Run; structure: string }) {
  const [perDay, setPerDay] = useState(40);
  const [days, setDays] = useState(1);
  const minutes = useStore(settings).minutes ?? run.minutes;
  const returned = useStore(returns);
  const budget = useLoaded(
    async (signal) => ({ structure, ...(await api.budget({ per_day: perDay, days, minutes, structure }, signal)) }),
    [perDay, days, minutes, structure, run.version, returned],
  );
  return (
    <section class="panel" aria-labelledby="budget-title" data-testid="budget">
      <h2 id="budget-title">Reviewer budget</h2>
      <p class="budget-question">
        With <Count label="reviews a day" testid="per-day" value={perDay} onChange={setPerDay} /> reviews a day for{" "}
        <Count label="days" testid="days" value={days} onChange={setDays} /> {days === 1 ? "day" : "days"}, what do we
        catch?
      </p>
      <div aria-live="polite">
        {budget.value?.structure === structure ? (
          <BudgetNumbers budget={budget.value} />
        ) : budget.error ? (
          <Problem error={budget.error} />
        ) : (
          <Loading what="Counting" />
        )}
      </div>
    </section>
  );
}

function Count({
  label,
  testid,
  value,
  onChange,
}: {
  label: string;
  testid: string;
  value: number;
  onChange: (value: number) => void;
}) {
  return (
    <NumberField
      aria-label={label}
      data-testid={testid}
      min={1}
      max={100000}
      value={value}
      isEager
      onChange={(typed) => typed >= 1 && onChange(Math.round(typed))}
    />
  );
}

function BudgetNumbers({ budget }: { budget: Budget }) {
  return (
    <dl class="figures wide">
      <Figure label="Reviewed" testid="budget-reviewed" value={count(budget.reviewed)} note={`of ${count(budget.total)}`} />
      <Figure label="Takes" testid="budget-hours" value={hours(budget.hours)} />
      <Figure label="Threshold that fills it" testid="budget-threshold" value={number(budget.threshold, 4)} />
      <Figure label="Goes through unseen" testid="budget-coverage" value={percent(budget.coverage)} />
      {budget.caught != null && (
        <Figure label="Loss that is caught" tone="good" testid="budget-caught" value={percent(budget.caught)} />
      )}
      {budget.risk != null && <Figure label="Risk of the rest" testid="budget-risk" value={number(budget.risk)} />}
    </dl>
  );
}
