import { equal, test } from "./harness.js";
import { Notifier } from "/static/features/notifications/notifier.js";
import { signal } from "/static/vendor/signals.js";

test("what came in while the page was seen is not told when one looks elsewhere right after", async () => {
  const page = { hidden: false };
  const waiting = [];
  const notifier = new Notifier(
    {
      storage: { prefix: "", remembered: (name, otherwise) => signal(otherwise) },
      state: { me: signal("ann"), thread: () => ({ read: signal(0) }), choiceIn: () => null },
    },
    {
      Notification: { permission: "granted" },
      locks: { request: (name, options, then) => waiting.push(() => then({ name })) },
      page,
    },
  );
  const shown = [];
  notifier.show = (message) => shown.push(message.id);
  const decided = notifier.arrived({
    id: "m1", type: "direct", sender_id: "bob", thread_id: "dm.ann.bob", tseq: 1, mentions: [],
  });
  equal(waiting.length, 1);
  page.hidden = true;
  waiting[0]();
  await decided;
  equal(shown, []);
});
