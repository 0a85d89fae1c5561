/** A value that tells when it changes, and the hooks that show it. */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";

export class Store<T> {
  private readonly listeners = new Set<() => void>();
  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(next: T): void {
    if (Object.is(next, this.current)) return;
    this.current = next;
    for (const listener of this.listeners) listener();
  }

  update(change: Partial<T>): void {
    this.set({ ...this.current, ...change });
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [, redraw] = useState(0);
  const shown = store.value;
  // Before anything is painted: effects may come a tenth of a second later, when a key was pressed already.
  useLayoutEffect(() => {
    const changed = () => redraw((count) => count + 1);
    if (!Object.is(store.value, shown)) changed(); // it did so after it was drawn, and before this listens
    return store.subscribe(changed);
  }, [store]);
  return shown;
}

export interface Loaded<T> {
  value: T | null;
  error: Error | null;
  loading: boolean;
}

/** What `load` gives, asked for again whenever `keys` change; what is outdated is dropped. The last value stays while the next one comes. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, keys: unknown[]): Loaded<T> {
  const [state, setState] = useState<Loaded<T>>({ value: null, error: null, loading: true });
  useEffect(() => {
    const stop = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    load(stop.signal).then(
      (value) => stop.signal.aborted || setState({ value, error: null, loading: false }),
      (error: Error) => stop.signal.aborted || setState((before) => ({ ...before, error, loading: false })),
    );
    return () => stop.abort();
  }, keys);
  return state;
}
