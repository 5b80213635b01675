// The wire is read as the golden fixtures say that Python writes it.

import { describe, expect, it } from "vitest";
import wireCase from "../../../tests/golden/wire.json";
import { decode, type Header } from "../../display/wire";
import type { TaskScores } from "../../scores/head_scores";
import { bytes, list } from "../fixtures";

const orders = (task: TaskScores) => task.ranks.map((_, place) => task.order(place));

describe("the wire", () => {
  const buffer = bytes(wireCase.buffer);
  const header = wireCase.header as unknown as Header; // JSON has no pairs, only lists

  it("brings every task's maps, in every bit", () => {
    const scores = decode(header, buffer);
    expect(scores.tasks.map((t) => t.name)).toEqual(["<b>syntax</b>", "math 🧮", "long"]);
    expect(scores.tasks.map((t) => t.bits)).toEqual([32, 32, 16]);
    scores.tasks.forEach((one, i) => {
      expect(list(one.mean)).toEqual(wireCase.tasks[i]!.mean);
      expect(list(one.median)).toEqual(wireCase.tasks[i]!.median);
      expect(orders(one).map(list)).toEqual(wireCase.tasks[i]!.order);
      expect(
        one.low.every((low, cell) => low <= one.mean[cell]! && one.mean[cell]! <= one.high[cell]!),
      ).toBe(true);
    });
  });

  it("understates scores between the ends by less than a step and never overstates them", () => {
    const long = decode(header, buffer).tasks[2]!;
    const runs = wireCase.values.long.map((run) => run.flat());
    for (let cell = 0; cell < long.mean.length; cell++) {
      const sorted = runs.map((run) => run[cell]!).sort((a, b) => a - b);
      const [least, most] = [sorted[0]!, sorted.at(-1)!];
      const got = orders(long).map((map) => map[cell]!);
      long.ranks.forEach((rank, i) => {
        expect(got[i]).toBeLessThanOrEqual(sorted[rank]!);
        expect(got[i]).toBeGreaterThanOrEqual(Math.fround(sorted[rank]! - (most - least) / 65535));
      });
      expect([got[0], got.at(-1)]).toEqual([least, most]);
      expect(got).toEqual([...got].sort((a, b) => a - b));
    }
  });

  it("names rows and columns, where the scores come from, and what is known of a task", () => {
    const scores = decode(header, buffer);
    expect(scores.axes).toEqual(["Block", "Head"]);
    expect(scores.about.slice(0, 2)).toEqual([
      ["model", "tiny"],
      ["method", "mine"],
    ]);
    expect(scores.tasks.map((t) => t.note)).toEqual([
      null,
      null,
      "95% right, beats its foil 99%, 3 prompts dropped",
    ]);
  });

  it.each([0, 1, 8])("reads a view that starts %i bytes into a longer message", (offset) => {
    const message = new Uint8Array(buffer.length + offset + 7).fill(255);
    message.set(buffer, offset);
    const scores = decode(header, new DataView(message.buffer, offset, buffer.length));
    expect(list(scores.tasks[2]!.mean)).toEqual(wireCase.tasks[2]!.mean);
    expect(orders(scores.tasks[2]!).map(list)).toEqual(wireCase.tasks[2]!.order);
  });

  it("unpacks order statistics once", () => {
    decode(header, buffer).tasks.forEach((one, i) => {
      expect(list(one.mean)).toEqual(wireCase.tasks[i]!.mean);
      expect(orders(one).map(list)).toEqual(wireCase.tasks[i]!.order);
      expect(one.order(1)).toBe(one.order(1)); // unpacked once
      expect(one.above(1)).toBe(one.above(1));
    });
  });

  it("refuses what does not fit, with a sentence", () => {
    expect(() => decode({ ...header, version: 1 }, buffer)).toThrow(
      "wire version 1; this headwidget reads version 3",
    );
    expect(() => decode(header, buffer.subarray(4))).toThrow(
      /holds \d+ bytes; its header promises \d+\./,
    );
    expect(() => decode({ ...header, heads: 5 }, buffer)).toThrow("its header promises");
    const tasks = header.tasks.map((task) => ({ ...task, bits: 12 }));
    expect(() => decode({ ...header, tasks }, buffer)).toThrow(
      "has 3 order statistics of 12 bits; this headwidget reads",
    );
  });
});
