/**
 * Whoever types may not notice that the field is gone: its case was decided by another, or scored anew.
 *
 * What is typed on is then text, and no command, until the reviewer does something else.
 */

/** Comments and what is sought; a name that is asked for is sent by its own key. */
function isText({ tagName, type }: Field): boolean {
  return tagName === "TEXTAREA" || (tagName === "INPUT" && type === "search");
}

/** What of a field is looked at. */
export interface Field {
  tagName: string;
  type?: string;
  isConnected: boolean;
}

export class Typing {
  private field: Field | null = null;

  /** A field has the focus, or something else has: where the field is gone the page itself has moved it there. */
  begin(target: Field): void {
    if (isText(target)) this.field = target;
    else if (this.field?.isConnected) this.field = null;
  }

  /** The reviewer has left the field, or pointed at something. */
  end(): void {
    this.field = null;
  }

  /** A field was asked for that is not there yet: what is typed until then is text already. */
  expect(): void {
    this.field = { tagName: "TEXTAREA", isConnected: false };
  }

  /** Whether a key is one more of a text whose field is gone. Escape and Tab end such a text; Enter is a part of it. */
  goesOn(key: string): boolean {
    if (!this.field || this.field.isConnected) return false;
    if (["Escape", "Tab"].includes(key)) this.end();
    return true;
  }

  watch(): () => void {
    const focused = (event: Event) => this.begin(event.target as HTMLElement);
    const pointed = () => this.end();
    addEventListener("focusin", focused);
    // A field that is still there was left on purpose; one that is removed may lose the focus a moment before.
    const left = (event: Event) => {
      const { target } = event;
      setTimeout(() => (target as HTMLElement).isConnected && this.field === target && this.end());
    };
    addEventListener("focusout", left);
    addEventListener("pointerdown", pointed);
    return () => {
      removeEventListener("focusin", focused);
      removeEventListener("focusout", left);
      removeEventListener("pointerdown", pointed);
    };
  }
}
