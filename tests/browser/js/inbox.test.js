import { equal, test } from "./harness.js";
import { Mentions } from "/static/features/inbox/mentions.js";
import { signal } from "/static/vendor/signals.js";

const mention = (seq) => ({ seq, mentions: ["ann"] });

/** Mentions of ann's, and `answer(messages)` as the hub answers what was asked for last. */
function mentions() {
  const state = { me: signal("ann"), epoch: signal("e"), arrived: signal(null) };
  let answer;
  const call = () => new Promise((resolve) => (answer = resolve));
  const made = new Mentions({ state, client: { call } });
  return { made, state, answer: (messages, more = false) => answer({ messages, more }) };
}

const shown = (made) => made.messages.value?.map(({ seq }) => seq) ?? null;

test("what comes in while the first mentions are asked for stands above them", async () => {
  const { made, state, answer } = mentions();
  const loaded = made.load();
  for (const seq of [3, 4]) state.arrived.value = mention(seq);
  equal(shown(made), null);
  answer([mention(3), mention(2)]);
  await loaded;
  equal(shown(made), [4, 3, 2]);
});

test("what comes in later goes on top, once, and older ones below", async () => {
  const { made, state, answer } = mentions();
  const first = made.load();
  answer([mention(3)], true);
  await first;
  const older = made.load();
  for (const seq of [3, 4, 4]) state.arrived.value = mention(seq);
  state.arrived.value = { seq: 5, mentions: [] };
  answer([mention(2)]);
  await older;
  equal(shown(made), [4, 3, 2]);
});

test("another log has other mentions", async () => {
  const { made, state, answer } = mentions();
  const first = made.load();
  answer([mention(3)]);
  await first;
  state.epoch.value = "f";
  equal(shown(made), null);
  const again = made.load();
  answer([mention(1)]);
  await again;
  equal(shown(made), [1]);
});
