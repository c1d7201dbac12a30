import { equal, ok, test } from "./harness.js";
import { layoutOf } from "/static/features/interaction/layout.js";
import { readInteraction, totalsOf } from "/static/features/interaction/reading.js";
import { storyOf, wakesWithin } from "/static/features/interaction/story.js";
import { sentenceOf, wordsOf } from "/static/features/interaction/table.js";

const at = (s) => new Date(Date.UTC(2026, 0, 1, 0, 0, s)).toISOString();

function said(seq, sender_id, thread_id, more = {}) {
  const type = thread_id.startsWith("dm.") ? "direct" : "channel";
  const message = { id: `m${seq}`, seq, tseq: seq, sender_id, sender_kind: "agent", thread_id, type };
  return { ...message, content: `text ${seq}`, sent_at: at(seq), ...more };
}

const ASKED = [
  said(1, "ann", "dm.ann.bot"),
  said(2, "bot", "dm.bot.cat", { cause_id: "bot-m1" }),
  said(3, "bot", "dm.ann.bot", { cause_id: "bot-m1" }),
];
const WAKES = [
  { message_id: "m1", agent: "bot", turn: "bot-m1", state: "ended" },
  { message_id: "m2", agent: "cat", turn: "cat-m2", state: "running" },
];
const STORY = storyOf({ messages: ASKED, wakes: WAKES, turns: [] });

test("participants stand in the order in which they first speak", () => {
  equal(STORY.actors, ["ann", "bot", "cat"]);
});

test("a message goes to the others of its conversation, and wakes some of them", () => {
  equal(STORY.rows.map(({ to }) => to), [
    [{ id: "bot", wakes: true }],
    [{ id: "cat", wakes: true }],
    [{ id: "ann", wakes: false }],
  ]);
});

test("what is said to a room goes to whom it wakes", () => {
  const wakes = [{ message_id: "m1", agent: "bot", turn: "bot-m1", state: "ended" }];
  const [row] = storyOf({ messages: [said(1, "ann", "channel.a")], wakes, turns: [] }).rows;
  equal([row.bus, row.to], [true, [{ id: "bot", wakes: true }]]);
});

test("a turn lasts from the message that woke it to the last that it sent", () => {
  const [bot, cat] = STORY.turns;
  equal([bot.id, bot.from, bot.to], ["bot-m1", 0, 2]);
  equal([cat.id, cat.from, cat.to], ["cat-m2", 1, null]);
});

test("a turn that ended later than it spoke lasts until then", () => {
  const turns = [{ id: "bot-m1", started_at: at(1), duration_ms: 60_000, outcome: "finished" }];
  const [bot] = storyOf({ messages: ASKED, wakes: WAKES, turns }).turns;
  equal([bot.to, bot.outcome], [2.5, "finished"]);
});

test("several messages that woke one turn are one turn", () => {
  const messages = [said(1, "ann", "dm.ann.bot"), said(2, "ann", "dm.ann.bot")];
  const wakes = ["m1", "m2"].map((message_id) => ({ ...WAKES[0], message_id }));
  equal(storyOf({ messages, wakes, turns: [] }).turns.length, 1);
});

test("in a thread those who answered are known to have been woken", () => {
  const found = wakesWithin(ASKED);
  equal(found, [{ message_id: "m1", agent: "bot", turn: "bot-m1", state: "ended" }]);
  equal(wakesWithin(ASKED.slice(1)), [], "the message that woke it is not there");
});

test("a notice of the hub wakes nobody", () => {
  const notice = said(2, "hub", "dm.ann.bot", { sender_kind: "system", content: { turn: "bot-m1" } });
  equal(wakesWithin([ASKED[0], notice]), []);
});

test("time goes downwards and participants stand beside each other", () => {
  const plan = layoutOf(STORY, 900);
  const rising = (numbers) => numbers.every((n, k) => k === 0 || n > numbers[k - 1]);
  ok(rising(plan.heads.map(({ x }) => x)));
  ok(rising(plan.lines.map(({ y }) => y)));
  ok(plan.lines.at(-1).y < plan.height);
  ok(plan.heads.at(-1).x < plan.width && plan.width <= 900);
});

test("arrows point from who speaks to who is reached", () => {
  const { heads, lines } = layoutOf(STORY, 900);
  const [ann, bot] = heads.map(({ x }) => x);
  const [there, , back] = lines.map(({ arrows }) => arrows[0]);
  ok(ann < there.from && there.from < there.to && there.to < bot);
  ok(bot > back.from && back.from > back.to && back.to > ann);
});

test("many participants take more room than there is", () => {
  const messages = Array.from({ length: 30 }, (_, n) => said(n + 1, `p${n}`, "channel.a"));
  const plan = layoutOf(storyOf({ messages, wakes: [], turns: [] }), 900);
  ok(plan.width > 3000);
});

test("bars of one agent that overlap stand apart", () => {
  const turns = [
    { id: "a", agent: "bot", from: 0, to: 2 },
    { id: "b", agent: "bot", from: 1, to: null },
    { id: "c", agent: "bot", from: 2, to: 3 },
  ];
  const { bars } = layoutOf({ actors: ["bot"], rows: STORY.rows, turns }, 900);
  ok(bars[1].x > bars[0].x);
  equal(bars[2].x, bars[0].x, "the first has ended by then");
  equal(bars.map(({ open }) => open), [false, true, false]);
});

test("nobody and nothing is an empty picture", () => {
  const plan = layoutOf(storyOf({ messages: [], wakes: [], turns: [] }), 900);
  equal([plan.heads, plan.lines, plan.bars], [[], [], []]);
});

/** A hub that has these pages. */
const pages = (...all) => ({
  asked: [],
  async call(name, args) {
    this.asked.push(args.after);
    const nothing = { messages: [], wakes: [], turns: [], hidden: 0, more: false, upto: 0 };
    return { ...nothing, ...all[this.asked.length - 1] };
  },
});

test("an interaction is read page after page", async () => {
  const hub = pages(
    { messages: [ASKED[0]], hidden: 2, turns: [{ id: "bot-m1", tokens_in: 1 }], upto: 5, more: true },
    { messages: ASKED.slice(1), hidden: 1, turns: [{ id: "bot-m1", tokens_in: 2 }], upto: 9 },
  );
  const whole = await readInteraction(hub, "i1", 100);
  equal(hub.asked, [undefined, 5]);
  equal([whole.messages.length, whole.hidden, whole.more], [3, 3, false]);
  equal(whole.turns, [{ id: "bot-m1", tokens_in: 2 }], "the later word about a turn counts");
});

test("no more pages are read than are needed", async () => {
  const hub = pages({ messages: ASKED, upto: 5, more: true });
  const whole = await readInteraction(hub, "i1", 2);
  equal([hub.asked.length, whole.more], [1, true]);
});

test("an interaction's totals", () => {
  const turns = [
    { id: "bot-m1", started_at: at(1), duration_ms: 9000, tokens_in: 10, tokens_out: 1, cost_usd: 0.5 },
    { id: "cat-m2", started_at: at(2), tokens_in: 5, tokens_out: 2 },
  ];
  const found = totalsOf({ messages: ASKED, turns, wakes: WAKES, hidden: 1 });
  const { messages, tokensIn, tokensOut, cost, took } = found;
  equal([messages, found.turns, tokensIn, tokensOut, cost, took], [4, 2, 15, 3, 0.5, 9000]);
  equal(totalsOf({ messages: [], turns: [], wakes: [], hidden: 0 }).took, null);
});

const CLOSED = { id: "m2", seq: 2, sender_id: "bot", sender_kind: "agent", thread_id: "dm.bot.cat",
  type: "direct", recipients: ["cat"], cause_id: "bot-m1", hop: 1, sent_at: at(2) };

test("what one may not read stands where it was said, as far as it is told", async () => {
  const hub = pages({ messages: [ASKED[0], ASKED[2]], envelopes: [CLOSED], wakes: WAKES, hidden: 1 });
  const whole = await readInteraction(hub, "i1", 100);
  equal(whole.messages.map(({ id, closed = false }) => [id, closed]), [
    ["m1", false], ["m2", true], ["m3", false],
  ]);
  equal([whole.hidden, totalsOf(whole).messages], [1, 3]);
  const story = storyOf(whole);
  equal(story.rows[1].to, [{ id: "cat", wakes: true }]);
  equal(story.turns.map(({ id }) => id), ["bot-m1", "cat-m2"]);
});

test("a row that one may not read says who spoke to whom and nothing else", async () => {
  const [row] = storyOf({ messages: [{ ...CLOSED, closed: true }], wakes: WAKES.slice(1), turns: [] }).rows;
  equal(sentenceOf(row), "bot to cat, wakes cat: not visible to you");
  equal(wordsOf(row.message, 5), "not visible to you");
  equal(wordsOf(ASKED[0], 100), "text 1");
});
