/** Says that a threshold is only tried, and leads back to the policy. */

import type { Run } from "../api";
import { go, lastOpened, route } from "../desk";
import { significant } from "../format";
import { type Trial, withoutTrial } from "../trial";

const LOGGED = "Verdicts that are given here are logged with the decision of the policy, not with that of the trial.";

export function TrialNote({ trial, run }: { trial: Trial | null; run: Run }) {
  if (!trial) return null;
  const hasPolicy = Object.keys(run.policies).length > 0;
  return (
    <div class="note trial" role="status" data-testid="trial" title={hasPolicy ? LOGGED : undefined}>
      <span>
        <b>Trying {significant(trial.value)}</b> ({own(trial, hasPolicy)}).
        {hasPolicy && " Verdicts are logged with the policy’s decision."}
      </span>
      <button type="button" data-testid="trial-back" onClick={() => goBack(run)}>
        {hasPolicy ? "Back to the policy" : "Back to the list without it"}
      </button>
    </div>
  );
}

function own({ own: threshold }: Trial, hasPolicy: boolean): string {
  if (threshold !== null) return `the policy’s is ${significant(threshold)}`;
  return hasPolicy ? "each structure’s policy has its own" : "this run has no policy";
}

function goBack(run: Run): void {
  const { view, query } = route.value;
  if (view === "worklist") lastOpened.set(null); // it begins at the top
  go({ query: withoutTrial(query, run), ...(view === "worklist" && { at: 0 }) });
}
