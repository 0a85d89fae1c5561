import { describe, expect, it } from "vitest";
import type { Audit } from "../src/api";
import { auditWords } from "../src/views/audit";

const audit: Audit = {
  text: "Audit of 12 accepted cases: failure rate at most 27 % (95 % confidence).",
  alarm: false,
  confirmed: false,
  lower: 0,
  upper: 0.27,
  judged: 12,
  total: 40,
  counted: 12,
  next: 7,
  by_verdict: true,
  seed: "2f7a",
  share: 0.1,
};

describe("an audit", () => {
  it("shows how many cases are judged", () => {
    expect(auditWords(audit)).toEqual({ tone: "", progress: "12 of 40 audit cases judged.", note: "" });
    expect(auditWords({ ...audit, by_verdict: false }).progress).toBe("The loss of 12 of 40 audit cases is known.");
  });

  it("is green if the guarantee is confirmed, and red if it is broken", () => {
    expect(auditWords({ ...audit, confirmed: true }).tone).toBe("holds");
    expect(auditWords({ ...audit, confirmed: true, alarm: true }).tone).toBe("broken");
  });

  it("states how many verdicts wait for cases drawn before them", () => {
    expect(auditWords({ ...audit, counted: 9 }).note).toBe(
      "3 of them will count once the cases drawn before them are judged.",
    );
  });
});
