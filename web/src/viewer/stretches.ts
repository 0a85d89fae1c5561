/** Between which values the server stretches the values of a picture, whose tiles have 8 bits only. */

import type { View } from "../api";
import type { Levels } from "./colours";
import { usualLevels } from "./layers";

const REST_MS = 150;

/** New tiles are asked for when the levels rest a moment; meanwhile the browser stretches those that are there. */
export class Stretches {
  private readonly usual: Levels;
  private timer = 0;
  now: Levels;
  before: Levels;

  constructor(
    private readonly view: View,
    private readonly onChange: () => void,
  ) {
    this.usual = usualLevels(view);
    this.now = this.before = this.usual;
  }

  want(levels: Levels): void {
    clearTimeout(this.timer);
    if (!this.view.window || isSame(levels, this.now)) return;
    this.timer = window.setTimeout(() => {
      [this.before, this.now] = [this.now, levels];
      this.onChange();
    }, REST_MS);
  }

  /** What is said to the server: nothing of the usual levels. */
  asked(levels: Levels): Levels | null {
    return isSame(levels, this.usual) ? null : levels;
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}

function isSame(a: Levels, b: Levels): boolean {
  return a.low === b.low && a.high === b.high;
}
