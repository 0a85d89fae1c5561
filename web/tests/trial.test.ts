import { describe, expect, it } from "vitest";
import type { Policy } from "../src/api";
import { trialOf, withoutTrial } from "../src/trial";

const policy = (threshold: number): Policy => ({
  threshold,
  standing: "certified",
  text: "",
  digest: "",
  targets: [],
});
const one = { structures: ["liver"], policies: { liver: policy(0.8) } };
const two = { structures: ["liver", "spleen"], policies: { liver: policy(0.8), spleen: policy(0.7) } };
const none = { structures: ["liver"], policies: {} };

describe("a trial", () => {
  it("is any threshold but the policy’s own", () => {
    expect(trialOf({ threshold: "0.975" }, one)).toEqual({ value: 0.975, own: 0.8 });
    expect(trialOf({ threshold: "0.8" }, one)).toBeNull();
    expect(trialOf({}, one)).toBeNull();
    expect(trialOf({ threshold: "much" }, one)).toBeNull();
  });

  it("is told by the structure that is looked at", () => {
    expect(trialOf({ threshold: "0.8" }, two)).toEqual({ value: 0.8, own: null });
    expect(trialOf({ threshold: "0.8", structure: "liver" }, two)).toBeNull();
    expect(trialOf({ threshold: "0.8" }, two, "spleen")).toEqual({ value: 0.8, own: 0.7 });
    expect(trialOf({ threshold: "0.8" }, { ...one, policies: { "": policy(0.6) } })).toEqual({ value: 0.8, own: 0.6 });
  });

  it("is one also where no policy decides", () => {
    expect(trialOf({ threshold: "0.8" }, none)).toEqual({ value: 0.8, own: null });
  });

  it("leads back to the list by the policy, or to all where nothing decides", () => {
    const query = { threshold: "0.9", decision: "defer", set: "ID" };
    expect(withoutTrial(query, one)).toEqual({ decision: "defer", set: "ID" });
    expect(withoutTrial(query, none)).toEqual({ set: "ID" });
  });
});
