/** What lies over the page: help, the question for the reviewer's name. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { asksName, route, settings, showsHelp } from "../desk";
import { BINDINGS, keyName } from "../keys";
import { useStore } from "../store";

function Dialog({
  title,
  onClose,
  children,
  testid,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  testid: string;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const shown = dialog.current!;
    shown.showModal();
    return () => shown.close(); // gives the focus back; to be taken out of the page does not
  }, []);
  const cancelled = (event: Event) => {
    event.preventDefault(); // else it is gone from the screen a moment before the page knows
    onClose();
  };
  return (
    <dialog
      ref={dialog}
      onCancel={cancelled}
      onClose={() => dialog.current && onClose()}
      aria-labelledby="dialog-title"
      data-testid={testid}
    >
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

export function Help() {
  if (!useStore(showsHelp)) return null;
  const { view } = route.value;
  const bindings = BINDINGS.filter(({ views }) => views.includes(view));
  return (
    <Dialog title="Keys" onClose={() => showsHelp.set(false)} testid="help">
      <dl class="keys">
        {bindings.map(({ keys, help }) => (
          <div key={help}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{keyName(key)}</kbd>
              ))}
            </dt>
            <dd>{help}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog" class="dialog-buttons">
        <button>Close</button>
      </form>
    </Dialog>
  );
}

export function AskName() {
  const answer = useStore(asksName);
  return answer && <NameDialog answer={answer} />;
}

function NameDialog({ answer }: { answer: (name: string) => void }) {
  const [name, setName] = useState(settings.value.reviewer);
  const close = (given: string) => {
    asksName.set(null);
    if (given) settings.update({ reviewer: given });
    answer(given);
  };
  return (
    <Dialog title="Who reviews?" onClose={() => asksName.value && close("")} testid="ask-name">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          close(name.trim());
        }}
      >
        <label for="reviewer-name">Your name goes into the log with each verdict. This browser remembers it.</label>
        <input
          id="reviewer-name"
          data-testid="reviewer-name"
          required
          maxLength={100}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
          autoFocus
        />
        <div class="dialog-buttons">
          <button type="button" onClick={() => close("")}>
            Not now
          </button>
          <button class="primary" data-testid="reviewer-save">
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
