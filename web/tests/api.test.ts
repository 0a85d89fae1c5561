import { describe, expect, it, vi } from "vitest";
import { Api, Refused, type Row, Unreachable, asQuery, tileAddress } from "../src/api";

const answer = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status });

describe("asQuery", () => {
  it("leaves out what says nothing, but not zero and false", () => {
    expect(asQuery({ a: 0, b: "", c: null, d: undefined, e: false })).toBe("?a=0&e=false");
    expect(asQuery({ a: "" })).toBe("");
  });

  it("escapes names that look like more", () => {
    expect(asQuery({ search: "<b>&x=1#../" })).toBe("?search=%3Cb%3E%26x%3D1%23..%2F");
  });
});

describe("Api", () => {
  it("asks for cases", async () => {
    const send = vi.fn(async () => answer({ total: 0, rows: [] }));
    await expect(new Api(send).cases({ offset: 200, sort: "dice" })).resolves.toEqual({ total: 0, rows: [] });
    expect(send).toHaveBeenCalledWith(
      "/api/cases?offset=200&sort=dice",
      expect.objectContaining({ credentials: "same-origin" }),
    );
  });

  it("marks what changes something", async () => {
    const send = vi.fn(async (..._: Parameters<typeof fetch>) => answer({ id: 1 }));
    const row = { number: 3, set: null, case: "a", structure: "organ", digest: "1", confidence: 0.5 } as Row;
    await new Api(send).decide(row, { verdict: "accept", comment: "", reviewer: "Ann", request: "r" });
    const request = send.mock.calls[0]![1]!;
    expect(request.method).toBe("POST");
    expect(request.headers).toMatchObject({ "X-Segtrust": "1" });
    expect(JSON.parse(request.body as string)).toMatchObject({ number: 3, set: "", case: "a", digest: "1", reviewer: "Ann" });
  });

  it("gives the reason of a refusal", async () => {
    const api = new Api(async () => answer({ detail: "only one's own" }, 403));
    await expect(api.undo(1, "Ann")).rejects.toThrow("only one's own");
    await expect(api.undo(1, "Ann")).rejects.toBeInstanceOf(Refused);
  });

  it("survives a refusal that is no JSON", async () => {
    await expect(new Api(async () => new Response("<h1>Bad gateway</h1>", { status: 502 })).run()).rejects.toThrow(
      "502",
    );
  });

  it("tells when the server is gone, and when it is back", async () => {
    const reached: boolean[] = [];
    const send = vi
      .fn<typeof fetch>()
      .mockRejectedValueOnce(new TypeError("Failed to fetch"))
      .mockResolvedValueOnce(answer({}));
    const api = new Api(send, (is) => reached.push(is));
    await expect(api.run()).rejects.toBeInstanceOf(Unreachable);
    await api.run();
    expect(reached).toEqual([false, true]);
  });

  it("does not take an aborted question for a server that is gone", async () => {
    const reached: boolean[] = [];
    const api = new Api(
      () => Promise.reject(new DOMException("", "AbortError")),
      (is) => reached.push(is),
    );
    await expect(api.run()).rejects.toMatchObject({ name: "AbortError" });
    expect(reached).toEqual([]);
  });
});

it("addresses tiles by numbers only", () => {
  expect(tileAddress(7, "mask", { slice: 3, level: 1, row: 0, column: 2 })).toBe("/api/cases/7/tiles/mask/3/1/0/2.png");
});
