/** The frame of the page: header, banner, the view that is asked for, messages. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Refused, type Run } from "./api";
import { listenToKeys, useCommands } from "./commands";
import {
  api,
  asksName,
  beginAnew,
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
const NO_TOKEN = 401;

export function App() {
  const [round, again] = useState(0);
  const run = useLoaded((signal) => api.run(signal), [round]);
  useEffect(followLog, []);
  useLayoutEffect(() => listenToKeys(() => route.value.view, tellTypedOn), []);
  useRefreshes(() => again((count) => count + 1));
  useTheme();
  useRunSettings(run.value);
  useRestarts(run.value?.instance);
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
        ) : run.error instanceof Refused && run.error.status === NO_TOKEN ? (
          <TokenForm error={run.error} />
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

/** What is typed on decides nothing, and is not lost in silence. */
function tellTypedOn(): void {
  const text =
    "The case that you were writing about has changed or gone. What you wrote until then is kept; press Esc to go on here.";
  message.set({ kind: "problem", text });
}

/** The address that was printed, for who has only its token. */
function TokenForm({ error }: { error: Error }) {
  const [token, setToken] = useState("");
  const [told, setTold] = useState(error.message);
  const open = async (given: string) => {
    if (await api.knows(given)) location.assign(`/?token=${encodeURIComponent(given)}`);
    else setTold("This token is not right.");
  };
  return (
    <div class="nothing problem" data-testid="problem">
      <p class="nothing-title">This desk asks for a token</p>
      <p role="alert">{told}</p>
      <form
        class="token-form"
        onSubmit={(event) => {
          event.preventDefault();
          void open(token.trim());
        }}
      >
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          data-testid="token"
          required
          autocomplete="off"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button class="primary" data-testid="token-open">
          Open
        </button>
      </form>
    </div>
  );
}

/** The run is asked for again now and then, for it grows or is scored anew; and when the server is back. */
function useRefreshes(again: () => void): void {
  const returned = useStore(returns);
  useEffect(() => {
    const timer = setInterval(again, RUN_POLL_MS);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (returned > 0) again();
  }, [returned]);
}

/** Nobody decides on a case by a number of before. */
function useRestarts(instance: string | undefined): void {
  const known = useRef(instance);
  useEffect(() => {
    if (known.current && instance && known.current !== instance && ["worklist", "case"].includes(route.value.view)) {
      message.set(message.value ?? { kind: "problem", text: "The desk was started anew. Choose your case again." });
      beginAnew();
    }
    known.current = instance ?? known.current;
  }, [instance]);
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
  // At once: a moment later the focus may be where the reviewer has put it.
  useLayoutEffect(() => {
    if (!isFirst.current) document.getElementById("main")?.focus(); // who reads by ear begins at the new content
    isFirst.current = false;
  }, [view, number]);
  switch (view) {
    case "worklist":
      return <Worklist key={run.instance} run={run} />;
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

const STOPPED = "Nobody is scoring any more: the run was killed. The same command goes on where it was.";

function RunState({ run }: { run: Run }) {
  return (
    <p class="run-state" data-testid="run-state">
      {!run.finished && (
        <span class="tag decision-defer" title={run.stopped ? STOPPED : undefined}>
          {run.stopped ? "stopped before its end" : "still running"}
        </span>
      )}
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
