/** Names of requests: a verdict whose answer was lost can be sent again, and is written down once. */

import type { Row, Verdict } from "./api";
import { identityOf, keyOf } from "./log";

export interface Said {
  verdict: Verdict;
  comment: string;
  reviewer: string;
}

type Kept = Pick<Storage, "getItem" | "setItem" | "removeItem">;

const PREFIX = "segtrust.request.";

/** Random, and to be had also where a page is not encrypted, as `randomUUID` is not. */
function newName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Keeps the name of what was sent of each case until it is answered, also over a reload. */
export class Requests {
  constructor(private readonly kept: Kept) {}

  /** The same name for the same verdict on the same map, as long as it is not answered; else a new one. */
  nameOf(row: Row, { verdict, comment, reviewer }: Said): string {
    const what = JSON.stringify([identityOf(row), verdict, comment, reviewer]);
    const [name, sent] = this.read(row);
    if (sent === what) return name;
    const fresh = newName();
    this.kept.setItem(PREFIX + keyOf(row), JSON.stringify([fresh, what]));
    return fresh;
  }

  answered(row: Row): void {
    this.kept.removeItem(PREFIX + keyOf(row));
  }

  private read(row: Row): [string, string] {
    return JSON.parse(this.kept.getItem(PREFIX + keyOf(row)) ?? '["", ""]');
  }
}
