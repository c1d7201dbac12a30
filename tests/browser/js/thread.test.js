import { equal, ok, test } from "./harness.js";
import { Thread } from "/static/core/thread.js";
import { dayName, dayOf, duration } from "/static/core/time.js";

const message = (tseq, more = {}) => ({ id: `m${tseq + 100}`, seq: tseq + 100, tseq, ...more });
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, n) => message(from + n));

function thread(...parts) {
  const made = new Thread("channel.general");
  for (const part of parts) made.take(part);
  return made;
}

test("messages stand at their positions, in whatever order they come", () => {
  const it = thread(range(8, 9), range(1, 2));
  equal(it.head.value, 9);
  equal(it.lastSeq.value, 109);
  equal([it.at(1).id, it.at(9).id, it.at(5)], ["m101", "m109", null]);
});

test("lists that were left out since they are empty are empty lists", () => {
  const { mentions, attachments, recipients } = thread([message(1)]).at(1);
  equal([mentions, attachments, recipients], [[], [], []]);
  equal(thread([message(1, { mentions: ["ann"] })]).at(1).mentions, ["ann"]);
});

test("what is missing of a range is told as a range within the thread", () => {
  const it = thread(range(3, 4), range(9, 10));
  equal(it.missing(1, 10), [1, 8]);
  equal(it.missing(3, 9), [5, 8]);
  equal(it.missing(-20, 4), [1, 2]);
  equal(it.missing(9, 400), null);
  equal(new Thread("channel.x").missing(1, 5), null);
});

test("a summary never takes back messages that are known", () => {
  const it = thread(range(1, 5));
  it.summarise({ head: 3, last_seq: 103, read: 2, messages: [] });
  equal([it.head.value, it.lastSeq.value], [5, 105]);
});

test("the hub's mark counts, unless this page is about to tell it another", () => {
  const it = thread(range(1, 5));
  it.read.value = 4;
  it.summarise({ head: 5, last_seq: 105, read: 2, messages: [] });
  equal(it.read.value, 2);
  it.marking = 4;
  it.summarise({ head: 5, last_seq: 105, read: 2, messages: [] });
  equal(it.read.value, 4);
});

test("what is unread is counted from the mark on, mentions apart", () => {
  const it = thread(range(1, 9));
  it.read.value = 6;
  for (const tseq of [5, 8, 8]) it.mentioned(tseq);
  equal([it.unread.value, it.unreadMentions.value], [3, 1]);
  it.read.value = 9;
  equal([it.unread.value, it.unreadMentions.value], [0, 0]);
});

test("while one reads, what is far away is forgotten and the end stays", () => {
  const it = thread(range(1, 2000));
  it.trim(1000);
  ok(it.messages.size < 700);
  equal([it.at(1000) !== null, it.at(100), it.at(2000) !== null], [true, null, true]);
  equal(it.missing(990, 1010), null);
});

test("a thread that was left keeps its end only", () => {
  const it = thread(range(1, 2000));
  it.trim();
  equal(it.messages.size, 50);
  equal(it.missing(1951, 2000), null);
  equal(it.latest.tseq, 2000);
});

test("a short thread is kept whole", () => {
  const it = thread(range(1, 40));
  it.trim();
  equal(it.messages.size, 40);
});

test("days have the names that people give them", () => {
  const noon = (day) => new Date(2026, 2, day, 12).toISOString();
  const now = new Date(2026, 2, 15, 0, 5);
  equal([dayName(noon(15), now), dayName(noon(14), now)], ["Today", "Yesterday"]);
  ok(dayName(noon(3), now).includes("3") && !dayName(noon(3), now).includes("2026"));
  ok(dayName(new Date(2024, 5, 1).toISOString(), now).includes("2024"));
});

test("a day ends at midnight where the reader is", () => {
  const at = (...parts) => new Date(2026, ...parts).toISOString();
  equal(dayOf(at(0, 1, 0, 0)), dayOf(at(0, 1, 23, 59)));
  ok(dayOf(at(0, 1, 23, 59)) !== dayOf(at(0, 2, 0, 0)));
});

test("durations are as long as they need to be", () => {
  equal([0, 420, 1500, 12_400, 89_000, 200_000, 7_200_000].map(duration), [
    "0 ms", "420 ms", "1.5 s", "12 s", "89 s", "3 min", "2.0 h",
  ]);
  equal(duration(null), "");
});

const edit = (tseq, of, content, kind = "edited") =>
  message(tseq, { amends: { message_id: `m${of + 100}`, kind }, ...(kind === "edited" && { content }) });

test("an edit that comes shows in the message that it changes, also if that comes later", () => {
  const it = thread([message(1, { content: "old" })]);
  it.hear(edit(3, 1, "new"));
  equal([it.at(1).content, it.at(1).amended], ["new", "edited"]);
  it.take([message(1, { content: "old" })]);
  equal(it.at(1).content, "new");
});

test("what was deleted says nothing any more, whatever edit comes in late", () => {
  const it = thread([message(1, { content: "old" })]);
  it.hear(edit(3, 1, null, "deleted"));
  it.hear(edit(2, 1, "new"));
  equal([it.at(1).content, it.at(1).amended], ["", "deleted"]);
});

test("edits in a page change nothing: the page has messages as they are now", () => {
  const it = thread([message(1, { content: "latest", amended: "edited" }), edit(2, 1, "earlier")]);
  equal(it.at(1).content, "latest");
});

test("edits are not unread, not the latest and no step of the keyboard", () => {
  const it = thread([message(1, { content: "one" }), message(2, { content: "two" })]);
  it.read.value = 2;
  it.hear(edit(3, 1, "changed"));
  equal([it.unread.value, it.head.value, it.latest.tseq], [0, 3, 2]);
  it.hear(message(4, { content: "four" }));
  equal([it.unread.value, it.said(3, 1), it.said(3, -1), it.saidAfter(0)], [1, 4, 2, 3]);
});
