import { equal, test } from "./harness.js";
import { listed } from "/static/core/pages.js";

/** A hub with so many turns, numbered from the oldest. */
const hub = (count) => ({
  asked: [],
  async call(operation, args) {
    this.asked.push(args);
    const last = args.before ? Number(args.before.slice(5)) - 1 : count;
    const first = Math.max(1, last - args.limit + 1);
    const turns = Array.from({ length: last - first + 1 }, (_, n) => ({ id: `bot-m${last - n}` }));
    return { turns, more: first > 1 };
  },
});

test("what the hub lists is read page after page, as far as it is wanted", async () => {
  const it = hub(400);
  const { turns, more } = await listed(it, "list_turns", { name: "turns", most: 250 });
  equal(it.asked, [{ limit: 100 }, { before: "bot-m301", limit: 100 }, { before: "bot-m201", limit: 50 }]);
  equal([turns.length, turns[0].id, turns.at(-1).id, more], [250, "bot-m400", "bot-m151", true]);
});

test("all that there is comes in one answer, if it is less", async () => {
  const it = hub(7);
  const { turns, more } = await listed(it, "list_turns", { name: "turns", most: 50, agent: "bot" });
  equal([it.asked, turns.length, more], [[{ agent: "bot", limit: 50 }], 7, false]);
});
