import { describe, expect, it } from "vitest";
import { Typing } from "../src/typing";

describe("Typing", () => {
  const field = (isConnected = true) => ({ tagName: "TEXTAREA", isConnected });

  it("lets keys of a field that is there alone", () => {
    const typing = new Typing();
    typing.begin(field());
    expect(typing.goesOn("a")).toBe(false);
  });

  it("goes on when the field is gone, until the reviewer does something else", () => {
    const typing = new Typing();
    typing.begin(field(false));
    expect(typing.goesOn("a")).toBe(true);
    expect(typing.goesOn("Enter")).toBe(true);
    expect(typing.goesOn("a")).toBe(true);
    expect(typing.goesOn("Escape")).toBe(true);
    expect(typing.goesOn("a")).toBe(false);
  });

  it("goes on when the page moves the focus elsewhere, until something is pointed at", () => {
    const typing = new Typing();
    typing.begin(field(false));
    typing.begin({ tagName: "MAIN", isConnected: true });
    expect(typing.goesOn("a")).toBe(true);
    typing.end();
    expect(typing.goesOn("a")).toBe(false);
  });

  it("ends when the reviewer leaves a field that is there", () => {
    const typing = new Typing();
    const left = field();
    typing.begin(left);
    typing.begin({ tagName: "BUTTON", isConnected: true });
    left.isConnected = false;
    expect(typing.goesOn("a")).toBe(false);
  });
});
