import { describe, expect, it } from "vitest";
import type { Certified } from "../src/api";
import { type Drift, standingOf } from "../src/views/certificate";

const limit = { risk: 0.1, below_dice: null, text: "the mean loss of accepted cases is at most 0.1", observed: 0.05, broken: false };
const certified: Certified = { limits: [limit], probability: 0.95, standing: "certified", holds: true, tested: true };
const broken = { limits: [{ ...limit, observed: 0.3, broken: true }] };

function told(change: Partial<Certified>, drift: Drift = "none", accepted = 10) {
  const answer = { certified: { ...certified, ...change }, accepted, no_finding: 0 };
  return standingOf({ answer, policy: null, hasPolicies: true, drift });
}

describe("a certificate", () => {
  it("tells of the policy’s own threshold what is promised, and whether it is kept", () => {
    expect(told({})).toMatchObject({ title: "Certified:", tone: "holds" });
    expect(told({}, "alarm")).toMatchObject({ title: "Certified, but in doubt:", tone: "broken" });
    expect(told({}, "unchecked")).toMatchObject({ title: "Certified:", tone: "" });
    expect(told(broken)).toMatchObject({ title: "Promised, but not kept here:", tone: "broken" });
  });

  it("claims no promise at another threshold, whatever else is the case", () => {
    for (const change of [{}, broken])
      for (const drift of ["none", "alarm", "unchecked", "failed", "asked"] as const)
        for (const accepted of [0, 10]) {
          const { title, tone } = told({ ...change, tested: false }, drift, accepted);
          expect(title).toBe("Certified at the policy’s threshold, not tested here:");
          expect(tone).not.toBe("holds");
        }
    expect(told({ ...broken, tested: false }).text).toContain("those accepted have a mean loss of 0.300.");
    expect(told({ tested: false }, "alarm", 0).text).toContain("No case of this run is let pass here.");
    expect(told({ tested: false }).text).toContain("if the risk does not rise with the confidence");
  });

  it("is none below the policy’s threshold, or without a policy", () => {
    expect(told({ holds: false, tested: false }).title).toBe("Not certified here.");
    expect(told({ holds: false, standing: "estimated" }).title).toBe("Not certified.");
    const answer = { certified: null, accepted: 1, no_finding: 0 };
    expect(standingOf({ answer, policy: null, hasPolicies: false, drift: "none" }).text).toContain(
      "This run has no calibrated policy",
    );
  });
});
