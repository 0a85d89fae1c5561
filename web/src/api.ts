/** The interface of the server, as docs/design/desk.md describes it. */

/** Null where neither a policy nor a threshold decides. */
export type Decision = "accept" | "defer" | "no finding" | null;
export type Verdict = "accept" | "reject" | "correct";
export type Layer = "image" | "probabilities" | "mask" | "truth";

export interface Policy {
  threshold: number | null;
  standing: string;
  text: string;
  digest: string;
  targets: unknown;
}

export interface Run {
  title: string;
  estimator: string;
  estimators: string[];
  structures: string[];
  sets: string[];
  groups: string[];
  rows: number;
  finished: boolean;
  failures: number;
  failed: { case: string; kind: string; reason: string }[];
  has_truth: boolean;
  has_loss: boolean;
  policies: Record<string, Policy>;
  reviewers: string[];
  /** Name to begin with, and minutes that a review takes. */
  reviewer: string;
  minutes: number;
  /** Grows whenever the run has changed. */
  version: number;
}

export interface Row {
  number: number;
  case: string;
  structure: string;
  set: string | null;
  group: string | null;
  confidence: number | null;
  margin: number | null;
  decision: Decision;
  dice: number | null;
  verdict: Verdict | null;
}

export interface Cases {
  total: number;
  rows: Row[];
}

/** A line of the log: a verdict, or the undoing of one. */
export interface Entry {
  id: number;
  set: string | null;
  case: string;
  structure: string;
  /** Empty if it takes one back. */
  verdict: Verdict | "" | null;
  comment: string;
  reviewer: string;
  time: string;
  undoes?: number | null;
}

export interface View {
  dimensions: 2 | 3;
  shape: number[];
  spacing_mm: number[] | null;
  layers: Layer[];
  levels: number;
  tile: number;
  slices: { middle: number; uncertain: number } | null;
}

export interface Case extends Row {
  scores: Record<string, unknown>;
  history: Entry[];
  view?: View | null;
  problem?: string | null;
}

export interface Certified {
  risk: number;
  below_dice: number | null;
  probability: number;
  standing: string;
  holds: boolean;
  /** Whether the threshold is the policy's own. */
  tested: boolean;
}

export interface AtThreshold {
  accepted: number;
  deferred: number;
  no_finding: number;
  coverage: number | null;
  risk: number | null;
  low: number | null;
  high: number | null;
  certified: Certified | null;
  hours: number;
}

export interface Curve {
  thresholds: number[];
  coverages: number[];
  risks: (number | null)[] | null;
}

export interface Budget {
  reviewed: number;
  hours: number;
  threshold: number | null;
  coverage: number | null;
  caught: number | null;
  risk: number | null;
}

export interface Agreement {
  bins: { low: number; high: number; accepted: number; not_accepted: number }[];
  auroc: number | null;
}

export interface Monitoring {
  reference: number[];
  new: number[];
  drift: { alarm: boolean; text: string; p_value: number | null } | null;
  martingale: { values: number[]; alarm_at: number } | null;
  agreement: Agreement | null;
}

export type Parameters = Record<string, string | number | boolean | null | undefined>;

/** The server answered, and said no. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
  }
}

/** The server did not answer. */
export class Unreachable extends Error {}

/** Parameters as a query; those that say nothing are left out. */
export function asQuery(parameters: Parameters): string {
  const said = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(said.map(([name, value]) => [name, String(value)]));
  return said.length > 0 ? `?${query}` : "";
}

async function detailOf(response: Response): Promise<string> {
  const fallback = `The server answered ${response.status}.`;
  try {
    const { detail } = await response.json();
    return typeof detail === "string" ? detail : fallback;
  } catch {
    return fallback;
  }
}

type Listener = (reachable: boolean) => void;

export class Api {
  constructor(
    private readonly send: typeof fetch = (...request) => fetch(...request),
    private readonly onReach: Listener = () => {},
  ) {}

  run = (signal?: AbortSignal) => this.get<Run>("/api/run", {}, signal);
  cases = (query: Parameters, signal?: AbortSignal) => this.get<Cases>("/api/cases", query, signal);
  case = (number: number, query: Parameters = {}, signal?: AbortSignal) =>
    this.get<Case>(`/api/cases/${number}`, query, signal);
  threshold = (query: Parameters, signal?: AbortSignal) => this.get<AtThreshold>("/api/threshold", query, signal);
  curve = (query: Parameters, signal?: AbortSignal) => this.get<Curve>("/api/curve", query, signal);
  budget = (query: Parameters, signal?: AbortSignal) => this.get<Budget>("/api/budget", query, signal);
  monitoring = (query: Parameters, signal?: AbortSignal) => this.get<Monitoring>("/api/monitoring", query, signal);
  entriesAfter = (id: number) => this.get<Entry[]>("/api/verdicts", { after: id });
  decide = (verdict: { number: number; case: string; verdict: Verdict; comment: string; reviewer: string }) =>
    this.post<Entry>("/api/verdicts", verdict);
  undo = (id: number, reviewer: string) => this.post<Entry>(`/api/verdicts/${id}/undo`, { reviewer });

  get<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
    return this.ask<T>(path + asQuery(parameters), { signal: signal ?? null });
  }

  post<T>(path: string, body: unknown): Promise<T> {
    const headers = { "Content-Type": "application/json", "X-Segtrust": "1" };
    return this.ask<T>(path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  private async ask<T>(path: string, request: RequestInit): Promise<T> {
    const response = await this.reach(path, request);
    if (!response.ok) throw new Refused(response.status, await detailOf(response));
    return (await response.json()) as T;
  }

  private async reach(path: string, request: RequestInit): Promise<Response> {
    try {
      const response = await this.send(path, { credentials: "same-origin", ...request });
      this.onReach(true);
      return response;
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      this.onReach(false);
      throw new Unreachable("The server does not answer.");
    }
  }
}

export function tileAddress(
  number: number,
  layer: Layer,
  place: { slice: number; level: number; row: number; column: number },
): string {
  return `/api/cases/${number}/tiles/${layer}/${place.slice}/${place.level}/${place.row}/${place.column}.png`;
}

export function volumeAddress(number: number, layer: Layer): string {
  return `/api/cases/${number}/volumes/${layer}.nii`;
}
