/** The frame of the page: header, banner, the view that is asked for, messages. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Run } from "./api";
import { listenToKeys, useCommands } from "./commands";
import {
  api,
  asksName,
  followLog,
  go,
  message,
  reachable,
  readLog,
  returns,
  route,
  settings,
  showsHelp,
  undo,
} from "./desk";
import type { ViewName } from "./keys";
import { Loading, Menu, Problem } from "./parts/basics";
import { AskName, Help } from "./parts/dialogs";
import { useLoaded, useStore } from "./store";
import { CaseView } from "./views/case";
import { MonitoringView } from "./views/monitoring";
import { ThresholdView } from "./views/threshold";
import { Worklist } from "./views/worklist";

const RUN_POLL_MS = 10_000;
const MESSAGE_MS = 6000;

export function App() {
  const [round, again] = useState(0);
  const run = useLoaded((signal) => api.run(signal), [round]);
  useEffect(followLog, []);
  useEffect(() => listenToKeys(() => route.value.view), []);
  useRefreshes(() => again((count) => count + 1), run.value?.finished ?? true);
  useTheme();
  useRunSettings(run.value);
  useCommands((command) => {
    if (command === "help") showsHelp.set(true);
    else if (command === "back") go({ view: "worklist", number: null });
    else return false;
  });
  return (
    <>
      <Header run={run.value} />
      <Banner
        onRetry={() => {
          again((count) => count + 1);
          void readLog().catch(() => {});
        }}
      />
      <main id="main" tabIndex={-1}>
        {run.value ? (
          <CurrentView run={run.value} />
        ) : run.error ? (
          <Problem error={run.error} onRetry={() => again((count) => count + 1)} />
        ) : (
          <Loading what="Reading the run" />
        )}
      </main>
      <Toast />
      <Help />
      <AskName />
    </>
  );
}

/** A run that goes on is asked for again now and then; any run when the server is back. */
function useRefreshes(again: () => void, finished: boolean): void {
  const returned = useStore(returns);
  useEffect(() => {
    if (finished) return;
    const timer = setInterval(again, RUN_POLL_MS);
    return () => clearInterval(timer);
  }, [finished]);
  useEffect(() => {
    if (returned > 0) again();
  }, [returned]);
}

function useTheme(): void {
  const { theme } = useStore(settings);
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
}

/** Title, and the reviewer's name to begin with, as the server was started. */
function useRunSettings(run: Run | null): void {
  useEffect(() => {
    if (!run) return;
    document.title = `${run.title} – review desk`;
    if (run.reviewer && !settings.value.reviewer) settings.update({ reviewer: run.reviewer });
  }, [run?.title, run?.reviewer]);
}

function CurrentView({ run }: { run: Run }) {
  const { view, number } = useStore(route);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) document.getElementById("main")?.focus(); // who reads by ear begins at the new content
    isFirst.current = false;
  }, [view, number]);
  switch (view) {
    case "worklist":
      return <Worklist run={run} />;
    case "case":
      return <CaseView run={run} />;
    case "threshold":
      return <ThresholdView run={run} />;
    case "monitoring":
      return <MonitoringView run={run} />;
  }
}

const TABS: [ViewName, string][] = [
  ["worklist", "Worklist"],
  ["threshold", "Threshold"],
  ["monitoring", "Monitoring"],
];

function Header({ run }: { run: Run | null }) {
  const { view } = useStore(route);
  const { reviewer } = useStore(settings);
  const isCurrent = (name: ViewName) => name === view || (name === "worklist" && view === "case");
  return (
    <header class="bar">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the content
      </a>
      <h1 data-testid="title">{run?.title ?? "Review desk"}</h1>
      <nav aria-label="Views">
        {TABS.map(([name, label]) => (
          <button
            key={name}
            type="button"
            class="tab"
            data-testid={`tab-${name}`}
            aria-current={isCurrent(name) ? "page" : undefined}
            onClick={() => go({ view: name, number: null })}
          >
            {label}
          </button>
        ))}
      </nav>
      {run && <RunState run={run} />}
      {run && <Failures run={run} />}
      <div class="bar-end">
        <Menu label="Export" testid="export">
          <div class="menu-items">
            <a href="/api/export.csv" download="verdicts.csv" data-testid="export-csv">
              Log as CSV
            </a>
            <a href="/api/export.json" download="verdicts.json" data-testid="export-json">
              Log as JSON
            </a>
          </div>
        </Menu>
        <button type="button" class="quiet" data-testid="reviewer" onClick={() => asksName.set(() => {})}>
          {reviewer || "Who reviews?"}
        </button>
        <ThemeButton />
        <button
          type="button"
          class="quiet"
          data-testid="help-button"
          aria-label="Keys and help"
          onClick={() => showsHelp.set(true)}
        >
          ?
        </button>
      </div>
    </header>
  );
}

function RunState({ run }: { run: Run }) {
  return (
    <p class="run-state" data-testid="run-state">
      {!run.finished && <span class="tag decision-defer">still running</span>}
      <span>confidence: {run.estimator}</span>
    </p>
  );
}

/** What gave no result, and why: such cases are in no list, and must not be forgotten. */
function Failures({ run }: { run: Run }) {
  if (run.failures === 0) return null;
  return (
    <Menu label={<span class="verdict-reject">{run.failures} without a score</span>} testid="failures">
      <dl class="menu-items failures">
        {run.failed.map(({ case: name, kind, reason }) => (
          <div key={name + kind}>
            <dt>{name}</dt>
            <dd>{reason}</dd>
          </div>
        ))}
        {run.failures > run.failed.length && (
          <div>
            <dt>…</dt>
            <dd>and {run.failures - run.failed.length} more</dd>
          </div>
        )}
      </dl>
    </Menu>
  );
}

const THEMES = { system: "dark", dark: "light", light: "system" } as const;
const THEME_SIGNS = { system: "◐", dark: "●", light: "○" } as const;

function ThemeButton() {
  const { theme } = useStore(settings);
  return (
    <button
      type="button"
      class="quiet"
      data-testid="theme"
      aria-label={`Theme: ${theme}`}
      title={`Theme: ${theme}`}
      onClick={() => settings.update({ theme: THEMES[theme] })}
    >
      {THEME_SIGNS[theme]}
    </button>
  );
}

function Banner({ onRetry }: { onRetry: () => void }) {
  if (useStore(reachable)) return null;
  return (
    <div class="banner" role="alert" data-testid="banner">
      The server does not answer. What you see is what was last known; nothing you typed is lost.
      <button type="button" onClick={onRetry}>
        Try again
      </button>
    </div>
  );
}

function Toast() {
  const current = useStore(message);
  useEffect(() => {
    if (current?.kind !== "done") return;
    const timer = setTimeout(() => message.set(null), MESSAGE_MS);
    return () => clearTimeout(timer);
  }, [current]);
  return (
    <div class="toast-place" role="status" aria-live="polite" data-testid="message">
      {current && (
        <div class={`toast ${current.kind}`}>
          <span>{current.text}</span>
          {current.undo !== undefined && (
            <button type="button" class="quiet" onClick={() => void undo(current.undo!)}>
              Undo <kbd aria-hidden="true">u</kbd>
            </button>
          )}
          <button type="button" class="quiet" aria-label="Close the message" onClick={() => message.set(null)}>
            ✕
          </button>
        </div>
      )}
    </div>
  );
}
