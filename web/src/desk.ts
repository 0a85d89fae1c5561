/** What the whole page knows: the connection, the log, the settings, where it is. */

import { Api, type Entry, type Row, Unreachable, type Verdict } from "./api";
import { Follower, Standing, VERDICT_LABELS, joined, keyOf, lastOf } from "./log";
import { Requests } from "./requests";
import { type Route, readRoute, writeRoute } from "./route";
import { Store } from "./store";

export interface Settings {
  reviewer: string;
  theme: "system" | "dark" | "light";
  /** That a review takes; as the server says unless the reviewer says otherwise. */
  minutes: number | null;
  /** Whether a verdict opens the next case. */
  advance: boolean;
}

const SETTINGS_KEY = "segtrust.desk";
const DEFAULTS: Settings = { reviewer: "", theme: "system", minutes: null, advance: false };
const POLL_MS = 3000;

function readSettings(): Settings {
  try {
    return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(SETTINGS_KEY) ?? "{}") };
  } catch {
    return DEFAULTS; // what is stored cannot be read, or the browser stores nothing
  }
}

export interface Message {
  text: string;
  kind: "done" | "problem";
  /** The verdict that can be taken back from the message. */
  undo?: number;
}

export const reachable = new Store(true);
export const settings = new Store(readSettings());
export const route = new Store<Route>(readRoute(location.hash));
export const log = new Store<readonly Entry[]>([]);
export const message = new Store<Message | null>(null);
export const asksName = new Store<null | ((name: string) => void)>(null);
export const showsHelp = new Store(false);
export const api = new Api(undefined, (reached) => reachable.set(reached));

/** The case that was open last: the list comes back to it, wherever it is by then. */
export const lastOpened = new Store<number | null>(route.value.number);

route.subscribe(() => route.value.number !== null && lastOpened.set(route.value.number));

/** Back to the top of the list: numbers of cases are others once the desk was started anew. */
export function beginAnew(): void {
  lastOpened.set(null);
  go({ view: "worklist", number: null, at: 0 }, true);
  lastOpened.set(null);
}

/** The structure that was looked at last, and the threshold that was tried for each. */
export const lastStructure = new Store<string | null>(null);
export const tried = new Map<string, number>();

const CLOSED_ALARM = "segtrust.alarm";

/** What the alarm said when it was closed: until the end of the session it stays so, unless it says something else. */
export const closedAlarm = new Store(sessionStorage.getItem(CLOSED_ALARM) ?? "");

closedAlarm.subscribe(() => sessionStorage.setItem(CLOSED_ALARM, closedAlarm.value));

/** How often the server came back: what was missed meanwhile is asked for again. */
export const returns = new Store(0);

reachable.subscribe(() => reachable.value && returns.set(returns.value + 1));

settings.subscribe(() => {
  try {
    localStorage.setItem(SETTINGS_KEY, JSON.stringify(settings.value));
  } catch {
    // a private window may store nothing; the settings then last as long as the page
  }
});

addEventListener("hashchange", () => route.set(readRoute(location.hash)));

export function go(change: Partial<Route>, replace = false): void {
  const hash = writeRoute({ ...route.value, ...change });
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  route.set(readRoute(hash));
}

addEventListener("popstate", () => route.set(readRoute(location.hash)));

let standingOf: { log: readonly Entry[]; standing: Standing } | null = null;

/** What holds now; read once for each state of the log. */
export function standing(): Standing {
  if (standingOf?.log !== log.value) standingOf = { log: log.value, standing: new Standing(log.value) };
  return standingOf.standing;
}

const follower = new Follower(api.entriesAfter, (fresh) => log.set(joined(log.value, fresh)));

export function readLog(): Promise<void> {
  return follower.catchUp();
}

/** Ask again and again for what others decide; also finds out when the server is back. */
export function followLog(): () => void {
  let timer = 0;
  const round = async () => {
    await readLog().catch(() => {});
    timer = window.setTimeout(round, POLL_MS);
  };
  void round();
  return () => clearTimeout(timer);
}

/** The reviewer's name; asked for once. */
function reviewer(): Promise<string> {
  const { reviewer: known } = settings.value;
  if (known) return Promise.resolve(known);
  return new Promise((resolve) => asksName.set(resolve));
}

/** Keys of the cases whose verdict is being sent: no second one is begun meanwhile, whatever is on the screen. */
export const onTheirWay = new Store<readonly string[]>([]);

export function isOnItsWay(row: Row): boolean {
  return onTheirWay.value.includes(keyOf(row));
}

/** Write a verdict; true if the server has it. Otherwise a message says why, and nothing that was typed is lost. */
export async function decide(row: Row, verdict: Verdict, comment: string): Promise<boolean> {
  if (isOnItsWay(row)) return false;
  onTheirWay.set([...onTheirWay.value, keyOf(row)]);
  try {
    const name = await reviewer();
    return name !== "" && (await attempt(() => send(row, verdict, comment, name)));
  } finally {
    onTheirWay.set(onTheirWay.value.filter((key) => key !== keyOf(row)));
  }
}

const requests = new Requests(sessionStorage);

async function send(row: Row, verdict: Verdict, comment: string, reviewer: string): Promise<void> {
  const said = { verdict, comment, reviewer };
  const entry = await api.decide(row, { ...said, request: requests.nameOf(row, said) });
  requests.answered(row);
  log.set(joined(log.value, [entry]));
  message.set({ kind: "done", text: `${row.case}: ${VERDICT_LABELS[verdict]}`, undo: entry.id });
}

/** Take back my verdict on this case or, if there is none, the last one that I gave. */
export function undoOn(row: Row | null): Promise<boolean> {
  const me = settings.value.reviewer;
  const entry = (row && standing().mine(row, me)) ?? lastOf(log.value, me);
  if (entry) return undo(entry.id);
  message.set({ kind: "done", text: "There is no verdict of yours to take back." });
  return Promise.resolve(false);
}

export function undo(id: number): Promise<boolean> {
  const taken = log.value.find((entry) => entry.id === id);
  return attempt(async () => {
    const entry = await api.undo(id, settings.value.reviewer);
    log.set(joined(log.value, [entry]));
    message.set({ kind: "done", text: `${taken?.case ?? "Verdict"}: verdict taken back` });
  });
}

async function attempt(action: () => Promise<void>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    const isUnknown = error instanceof Unreachable; // it may have come, and only its answer was lost
    const what = isUnknown ? "Not known to be saved. Send it again: it is written once." : "Not saved.";
    message.set({ kind: "problem", text: `${what} ${(error as Error).message} What you typed is still here.` });
    return false;
  }
}

const DRAFT = "segtrust.draft.";

/** How often a draft has changed: one that is sent is emptied wherever it is shown. */
export const draftChanges = new Store(0);

/** A comment that is not sent yet; it outlives a reload. */
export const drafts = {
  read: (row: Row): string => sessionStorage.getItem(DRAFT + keyOf(row)) ?? "",
  write(row: Row, text: string): void {
    if (text) sessionStorage.setItem(DRAFT + keyOf(row), text);
    else sessionStorage.removeItem(DRAFT + keyOf(row));
    draftChanges.set(draftChanges.value + 1);
  },
};
