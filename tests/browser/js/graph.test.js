import { equal, ok, test } from "./harness.js";
import { edgesOf, keysOf, LATELY_MS, membershipsOf, nodesOf, pathsOf } from "/static/features/graph/flows.js";
import { frameOf } from "/static/features/graph/frame.js";
import { Layout } from "/static/features/graph/layout.js";

const direct = { sender_id: "ann", thread_id: "dm.ann.bot.cat", type: "direct" };
const posted = { sender_id: "ann", thread_id: "channel.a.t3", type: "channel", mentions: ["bot", "ann"] };
const edges = (...pairs) => pairs.map(([a, b]) => ({ key: `${a} ${b}`, ends: [a, b] }));

function laid(keys, between) {
  const layout = new Layout();
  layout.update(keys, between);
  layout.settle();
  return layout;
}

const far = (places, a, b) =>
  Math.hypot(places.get(a).x - places.get(b).x, places.get(a).y - places.get(b).y);

test("a direct message runs to each of its recipients", () => {
  equal(pathsOf(direct), [["ann", "bot"], ["ann", "cat"]]);
});

test("a post runs to its channel and on to whom it mentions", () => {
  equal(pathsOf(posted), [["ann", "~channel.a"], ["~channel.a", "bot"]]);
  equal(pathsOf({ ...posted, mentions: undefined }), [["ann", "~channel.a"]]);
});

test("both directions are one edge, which fades", () => {
  const back = { ...direct, thread_id: "dm.ann.bot", sender_id: "bot" };
  const there = { ...back, sender_id: "ann" };
  const now = 10 * LATELY_MS;
  const flow = [{ message: there, at: now - LATELY_MS / 2 }, { message: back, at: now }];
  equal(edgesOf(flow, now), [{ key: "ann bot", ends: ["ann", "bot"], weight: 1.5, last: now }]);
  equal(edgesOf(flow, now + LATELY_MS), []);
});

test("nodes are everybody, the channels, and rooms that edges lead to", () => {
  const flow = [{ message: { sender_id: "ann", thread_id: "broadcast", type: "broadcast" }, at: 0 }];
  const keys = keysOf(edgesOf(flow, 0));
  const found = nodesOf([{ id: "bot", kind: "agent" }], [{ name: "a", members: [] }], keys);
  equal(found.map(({ key, kind }) => [key, kind]), [
    ["ann", "service"], ["bot", "agent"], ["~broadcast", "room"], ["~channel.a", "room"],
  ]);
});

test("memberships of a large channel are left out", () => {
  const many = Array.from({ length: 31 }, (_, n) => `p${n}`);
  const found = membershipsOf([{ name: "big", members: many }, { name: "a", members: ["ann"] }]);
  equal(found.map(({ ends }) => ends), [["ann", "~channel.a"]]);
});

test("the same network always has the same picture", () => {
  const keys = ["a", "b", "c", "d"];
  const [one, other] = [laid(keys, edges(["a", "b"])), laid([...keys].reverse(), edges(["a", "b"]))];
  for (const key of keys) ok(Math.hypot(one.places.get(key).x - other.places.get(key).x) < 1e-6);
});

test("those who talk stand nearer than those who do not", () => {
  const { places } = laid(["a", "b", "c", "d"], edges(["a", "b"], ["c", "d"]));
  ok(far(places, "a", "b") < far(places, "a", "c"));
  ok(far(places, "c", "d") < far(places, "b", "d"));
});

test("no two stand on each other", () => {
  const keys = Array.from({ length: 100 }, (_, n) => `p${n}`);
  const between = edges(...keys.slice(1).map((key) => ["p0", key]));
  const { places } = laid(keys, between);
  let nearest = Infinity;
  for (const a of keys) for (const b of keys) if (a < b) nearest = Math.min(nearest, far(places, a, b));
  ok(nearest > 0.02, `nearest: ${nearest}`);
});

test("a hundred nodes settle before anybody has waited", () => {
  const keys = Array.from({ length: 100 }, (_, n) => `p${n}`);
  const began = performance.now();
  laid(keys, edges(...keys.slice(1).map((key, n) => [key, keys[n >> 1]])));
  ok(performance.now() - began < 3000);
});

test("a settled layout stays until nodes or edges change", () => {
  const layout = laid(["a", "b"], edges(["a", "b"]));
  const before = { ...layout.places.get("a") };
  layout.update(["a", "b"], edges(["a", "b"]));
  ok(layout.settled);
  layout.update(["a", "b", "c"], edges(["a", "b"]));
  ok(!layout.settled);
  equal(layout.places.get("a"), before, "it moves on from where it is");
});

test("who goes is forgotten", () => {
  const layout = laid(["a", "b"], []);
  layout.update(["b"], []);
  equal([...layout.places.keys()], ["b"]);
});

test("a layout is drawn within the room that there is", () => {
  const places = new Map([["a", { x: -5, y: 0 }], ["b", { x: 5, y: 3 }]]);
  const at = frameOf(places, { width: 800, height: 600 });
  for (const key of ["a", "b"]) {
    const { x, y } = at(key);
    ok(x > 0 && x < 800 && y > 0 && y < 600);
  }
  equal(frameOf(new Map([["a", { x: 3, y: 3 }]]), { width: 100, height: 80 })("a"), { x: 50, y: 40 });
});
