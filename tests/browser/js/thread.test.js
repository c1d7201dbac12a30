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
  equal([it.head.value, it.lastSeq.value], [9, 109]);
  equal([it.at(1).id, it.at(9).id, it.at(5)], ["m101", "m109", null]);
  const { mentions, attachments, recipients } = it.at(1);
  equal([mentions, attachments, recipients], [[], [], []], "left out since they are empty");
  equal(thread([message(1, { mentions: ["ann"] })]).at(1).mentions, ["ann"]);
});

test("what is missing of a range is told as a range within the thread", () => {
  const it = thread(range(3, 4), range(9, 10));
  const asked = [[1, 10], [3, 9], [-20, 4], [9, 400]];
  equal(asked.map(([from, to]) => it.missing(from, to)), [[1, 8], [5, 8], [1, 2], null]);
  equal(new Thread("channel.x").missing(1, 5), null);
});

test("a summary takes back no messages, and its mark counts unless this page is about to tell another", () => {
  const it = thread(range(1, 5));
  it.summarise({ head: 3, last_seq: 103, read: 2, messages: [] });
  equal([it.head.value, it.lastSeq.value, it.read.value], [5, 105, 2]);
  it.read.value = it.marking = 4;
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

test("what is far away is forgotten, of a thread that was left all but its end", () => {
  const it = thread(range(1, 2000));
  it.trim(1000);
  ok(it.messages.size < 700);
  equal([it.at(1000) !== null, it.at(100), it.at(2000) !== null], [true, null, true]);
  equal(it.missing(990, 1010), null);
  it.trim();
  equal([it.messages.size, it.missing(1951, 2000), it.latest.tseq], [50, null, 2000]);
  const short = thread(range(1, 40));
  short.trim();
  equal(short.messages.size, 40);
});

test("days end at midnight where the reader is, and have the names that people give them", () => {
  const at = (...parts) => new Date(...parts).toISOString();
  equal(dayOf(at(2026, 0, 1, 0, 0)), dayOf(at(2026, 0, 1, 23, 59)));
  ok(dayOf(at(2026, 0, 1, 23, 59)) !== dayOf(at(2026, 0, 2, 0, 0)));
  const now = new Date(2026, 2, 15, 0, 5);
  equal([15, 14].map((day) => dayName(at(2026, 2, day, 12), now)), ["Today", "Yesterday"]);
  const name = dayName(at(2026, 2, 3, 12), now);
  ok(name.includes("3") && !name.includes("2026"));
  ok(dayName(at(2024, 5, 1), now).includes("2024"));
});

test("durations are as long as they need to be", () => {
  equal([null, 0, 420, 1500, 12_400, 89_000, 200_000, 7_200_000].map(duration), [
    "", "0 ms", "420 ms", "1.5 s", "12 s", "89 s", "3 min", "2.0 h",
  ]);
});

const edit = (tseq, of, content, kind = "edited") =>
  message(tseq, { amends: { message_id: `m${of + 100}`, kind }, ...(kind === "edited" && { content }) });

test("an edit shows in the message that it changes, whichever comes first, until that is deleted", () => {
  const old = () => message(1, { content: "old" });
  const it = thread([old()]);
  const shown = () => [it.at(1).content, it.at(1).amended];
  it.hear(edit(3, 1, "new"));
  equal(shown(), ["new", "edited"]);
  it.take([old()]);
  equal(shown(), ["new", "edited"]);
  it.hear(edit(5, 1, null, "deleted"));
  it.hear(edit(4, 1, "late"));
  equal(shown(), ["", "deleted"]);
  const page = thread([message(1, { content: "latest", amended: "edited" }), edit(2, 1, "earlier")]);
  equal(page.at(1).content, "latest", "a page has messages as they are now");
});

test("edits are not unread, not the latest and no step of the keyboard", () => {
  const it = thread([message(1, { content: "one" }), message(2, { content: "two" })]);
  it.read.value = 2;
  it.hear(edit(3, 1, "changed"));
  equal([it.unread.value, it.head.value, it.latest.tseq], [0, 3, 2]);
  it.hear(message(4, { content: "four" }));
  equal([it.unread.value, it.said(3, 1), it.said(3, -1), it.saidAfter(0)], [1, 4, 2, 3]);
});
