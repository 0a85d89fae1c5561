/** Whether somebody may rely on a threshold, and why. */

import type { AtThreshold, Certified, Limit, Policy } from "../api";
import { SIGNIFICANT, exactPercent, number, percent } from "../format";

/** Whether the new cases are like those of the calibration, as far as that is known yet. */
export type Drift = "none" | "alarm" | "asked" | "failed" | "unchecked";

export interface Standing {
  tone: "" | "holds" | "broken";
  title: string;
  text: string;
}

interface CertificateProps {
  answer: Pick<AtThreshold, "certified" | "accepted" | "no_finding">;
  policy: Policy | null;
  hasPolicies: boolean;
  drift: Drift;
}

export function Certificate(props: CertificateProps) {
  const { tone, title, text } = standingOf(props);
  return (
    <p class={`certificate ${tone}`} data-testid="certified">
      <b>{title}</b> {text}
    </p>
  );
}

export function standingOf({ answer, policy, hasPolicies, drift }: CertificateProps): Standing {
  const { certified } = answer;
  if (!certified) {
    const why = hasPolicies ? "No policy is for this structure" : "This run has no calibrated policy";
    return { tone: "", title: "Not certified.", text: `${why}: these numbers are what its cases happen to give.` };
  }
  if (!certified.holds) return notCertified(certified, policy);
  return certified.tested ? atThePolicy(certified, drift) : aboveThePolicy(certified, answer);
}

function notCertified(certified: Certified, policy: Policy | null): Standing {
  if (certified.standing !== "certified")
    return { tone: "broken", title: "Not certified.", text: policy?.text ?? "" };
  const text = `The promise (${promiseOf(certified)}) needs a threshold of at least ${number(policy?.threshold, SIGNIFICANT)}.`;
  return { tone: "broken", title: "Not certified here.", text };
}

/** Of the threshold that was tested: what is promised, and whether these cases may be trusted to keep it. */
function atThePolicy(certified: Certified, drift: Drift): Standing {
  const promise = promiseOf(certified);
  const seen = brokenOf(certified);
  if (seen)
    return {
      tone: "broken",
      title: "Promised, but not kept here:",
      text: `${promise}. Of the cases of this run ${seen}: they are not like those of the calibration.`,
    };
  if (drift === "alarm")
    return {
      tone: "broken",
      title: "Certified, but in doubt:",
      text: `${promise}. The new cases are not like those of the calibration, and for such cases nothing is promised.`,
    };
  return { tone: drift === "none" ? "holds" : "", title: "Certified:", text: `${promise}.` };
}

/** Of any other threshold nothing is promised, whatever the cases of this run have. */
function aboveThePolicy(certified: Certified, { accepted, no_finding }: CertificateProps["answer"]): Standing {
  const seen = brokenOf(certified);
  const why =
    accepted + no_finding === 0
      ? "No case of this run is let pass here."
      : seen
        ? `Of the cases of this run ${seen}.`
        : "Above that threshold it holds, for cases like those of the calibration, if the risk does not rise with the confidence.";
  return {
    tone: seen ? "broken" : "",
    title: "Certified at the policy’s threshold, not tested here:",
    text: `${promiseOf(certified)}. ${why}`,
  };
}

function promiseOf({ limits, probability }: Certified): string {
  return `${limits.map(({ text }) => text).join(" and ")}, with probability ${exactPercent(probability)}`;
}

/** What the cases have of the limits that they do not keep; empty if they keep all. */
function brokenOf({ limits }: Certified): string {
  return limits
    .filter((limit) => limit.broken)
    .map(observation)
    .join(" and ");
}

function observation({ observed, below_dice }: Limit): string {
  return below_dice === null
    ? `those accepted have a mean loss of ${number(observed)}`
    : `${percent(observed)} of those accepted have a Dice below ${number(below_dice, 2)}`;
}
