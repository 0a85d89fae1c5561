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
  /** Not finished, and nobody is at it any more. */
  stopped: boolean;
  failures: number;
  failed: { case: string; kind: string; reason: string }[];
  has_truth: boolean;
  has_loss: boolean;
  /** What the losses are, such as "1 − Dice"; the unit is empty if they have none. */
  loss: { name: string | null; label: string; unit: string };
  policies: Record<string, Policy>;
  reviewers: string[];
  /** Name to begin with, and minutes that a review takes. */
  reviewer: string;
  minutes: number;
  /** Another one whenever the run has changed, or the desk was started anew. */
  version: string;
  /** Another one when the desk was started anew: numbers of rows are then others. */
  instance: string;
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
  /** Fingerprint of the map; empty where none is known. */
  digest: string;
  verdict: Verdict | null;
}

export interface Cases {
  total: number;
  rows: Row[];
  /** Of the row that was to be found in the list; null where it is not there. */
  place: number | null;
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
  /** Fingerprint of the map that was looked at. */
  digest: string;
  undoes?: number | null;
}

export interface View {
  dimensions: 2 | 3;
  shape: number[];
  spacing_mm: number[] | null;
  layers: Layer[];
  levels: number;
  tile: number;
  /** How a slice is shown: in pixels of the screen's rows and columns, with the height of one for its width. */
  plane: {
    rows: number;
    columns: number;
    aspect: number;
    /** Sides of the body that are left, right, on top and at the bottom; empty where nothing tells. */
    letters: string;
  };
  slices: { middle: number; uncertain: number } | null;
  /** Values of the image that are black and white to begin with, of all its colours, and the range of all; null where there is none. */
  window: { low: number; high: number; least: number; most: number } | null;
  /** Why something is not shown; empty where all is. */
  note: string;
}

export interface Case extends Row {
  scores: Record<string, unknown>;
  history: Entry[];
  view?: View | null;
  problem?: string | null;
}

/** What a policy promises, and what the accepted cases have of it. */
export interface Limit {
  risk: number;
  below_dice: number | null;
  text: string;
  observed: number | null;
  /** Whether it is not kept here, and not by chance. */
  broken: boolean;
}

export interface Certified {
  limits: Limit[];
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
  total: number;
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

/** What the verdicts on a random share of the accepted cases say about the guarantee. */
export interface Audit {
  text: string;
  alarm: boolean;
  confirmed: boolean;
  lower: number;
  upper: number;
  judged: number;
  total: number;
  /** Judged cases that the bounds rest on: those before the first open one, in the order of the draw. */
  counted: number;
  /** Row to be judged next; null if none is left. */
  next: number | null;
  /** Whether a case is judged by a verdict, or else by its loss in the table. */
  by_verdict: boolean;
  seed: string;
  share: number;
}

export interface Monitoring {
  reference: number[];
  new: number[];
  /** Cases that the policy was made with, which are not among the new ones. */
  left_out: number;
  drift: { alarm: boolean; text: string; p_value: number | null } | null;
  martingale: { values: number[]; alarm_at: number } | null;
  agreement: Agreement | null;
  /** Null without a policy. */
  audit: Audit | null;
}

/** A policy whose new cases are not like those that it was made with. */
export interface Alarm {
  /** Empty of a policy for all. */
  structure: string;
  /** Those whose cases differ by themselves; empty where none can be named. */
  sets: string[];
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

  run = async (signal?: AbortSignal): Promise<Run> => {
    const run = await this.get<Run>("/api/run", {}, signal);
    return { ...run, version: `${run.instance} ${run.version}` };
  };
  cases = (query: Parameters, signal?: AbortSignal) => this.get<Cases>("/api/cases", query, signal);
  case = (number: number, query: Parameters = {}, signal?: AbortSignal) =>
    this.get<Case>(`/api/cases/${number}`, query, signal);
  threshold = (query: Parameters, signal?: AbortSignal) => this.get<AtThreshold>("/api/threshold", query, signal);
  curve = (query: Parameters, signal?: AbortSignal) => this.get<Curve>("/api/curve", query, signal);
  budget = (query: Parameters, signal?: AbortSignal) => this.get<Budget>("/api/budget", query, signal);
  monitoring = (query: Parameters, signal?: AbortSignal) => this.get<Monitoring>("/api/monitoring", query, signal);
  alarms = (signal?: AbortSignal) => this.get<Alarm[]>("/api/alarms", {}, signal);
  entriesAfter = (id: number) => this.get<Entry[]>("/api/verdicts", { after: id });
  /** Written once, however often it is sent under the same name of a request. */
  decide = (row: Row, said: { verdict: Verdict; comment: string; reviewer: string; request: string }) => {
    const { number, set, case: name, structure, digest } = row; // refused if any of it has changed meanwhile
    return this.post<Entry>("/api/verdicts", { number, set: set ?? "", case: name, structure, digest, ...said });
  };
  undo = (id: number, reviewer: string) => this.post<Entry>(`/api/verdicts/${id}/undo`, { reviewer });

  /** Whether a token is the right one. */
  async knows(token: string): Promise<boolean> {
    const headers = { Authorization: `Bearer ${/^[\x20-\x7e]+$/.test(token) ? token : "?"}` };
    return (await this.reach("/api/run", { headers })).ok;
  }

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
  stretch: { low: number; high: number } | null = null,
): string {
  const { slice, level, row, column } = place;
  const query = asQuery({ low: stretch?.low, high: stretch?.high });
  return `/api/cases/${number}/tiles/${layer}/${slice}/${level}/${row}/${column}.png${query}`;
}

export function volumeAddress(number: number, layer: Layer): string {
  return `/api/cases/${number}/volumes/${layer}.nii`;
}
