import { describe, expect, it } from "vitest";
import { type Bitmap, type Line, WHOLE, outlines, withSeams } from "../src/viewer/contours";

/** A mask as a drawing: # is inside. */
function drawn(...rows: string[]): Bitmap {
  return {
    width: rows[0]!.length,
    height: rows.length,
    data: Uint8Array.from(rows.join(""), (sign) => (sign === "#" ? 1 : 0)),
  };
}

const isClosed = (line: Line) => line[0] === line.at(-2) && line[1] === line.at(-1);

/** Twice the signed area inside a closed line. */
function area(line: Line): number {
  let sum = 0;
  for (let i = 0; i + 3 < line.length; i += 2) sum += line[i]! * line[i + 3]! - line[i + 2]! * line[i + 1]!;
  return sum / 2;
}

describe("outlines", () => {
  it("of nothing and of everything are none", () => {
    expect(outlines(drawn("...", "..."))).toEqual([]);
    expect(outlines(drawn("###", "###"))).toEqual([]);
  });

  it("run along the ends of a picture", () => {
    const [line, ...others] = outlines(drawn("###", "###"), WHOLE);
    expect(others).toEqual([]);
    expect(isClosed(line!)).toBe(true);
    expect(Math.abs(area(line!))).toBeCloseTo(6 - 4 * 0.125);
    const left = { left: true, right: false, top: false, bottom: false };
    expect(outlines(drawn("##", "##"), left)).toEqual([[0, 2, 0, 1.5, 0, 0.5, 0, 0]]);
    expect(outlines(drawn("..", ".."), WHOLE)).toEqual([]);
  });

  it("of one pixel are a diamond through the middles of its sides", () => {
    const [line, ...others] = outlines(drawn("...", ".#.", "..."));
    expect(others).toEqual([]);
    expect(isClosed(line!)).toBe(true);
    expect(Math.abs(area(line!))).toBeCloseTo(0.5);
    expect(line).toHaveLength(2 * 5);
  });

  it("cut only the corners of a block", () => {
    const [line] = outlines(drawn(".....", ".###.", ".###.", "....."));
    expect(Math.abs(area(line!))).toBeCloseTo(6 - 4 * 0.125);
  });

  it("of a ring are two that run in opposite directions", () => {
    const lines = outlines(drawn(".....", ".###.", ".#.#.", ".###.", "....."));
    expect(lines).toHaveLength(2);
    expect(lines.every(isClosed)).toBe(true);
    expect(Math.sign(area(lines[0]!))).toBe(-Math.sign(area(lines[1]!)));
  });

  it("end at the frame, beyond which nothing is known", () => {
    const lines = outlines(drawn("##..", "##..", "##.."));
    expect(lines).toHaveLength(1);
    expect(isClosed(lines[0]!)).toBe(false);
    expect(new Set([lines[0]![1], lines[0]!.at(-1)])).toEqual(new Set([0, 3]));
  });

  it("lose no edge where pixels touch by a corner", () => {
    const lines = outlines(drawn("....", ".#..", "..#.", "...."));
    const length = lines.reduce((sum, line) => sum + line.length / 2 - 1, 0);
    expect(length).toBe(8);
    expect(lines.every(isClosed)).toBe(true);
  });
});

describe("withSeams", () => {
  it("finds a border that runs along a seam", () => {
    const [left, right] = [drawn("##", "##"), drawn("..", "..")];
    expect(outlines(left)).toEqual([]);
    expect(outlines(withSeams(left, right, null))).toHaveLength(1);
    expect(outlines(withSeams(left, null, right))).toHaveLength(1);
  });

  it("leaves a tile without neighbours as it is", () => {
    expect(withSeams(drawn("#."), null, null)).toEqual(drawn("#."));
  });
});
