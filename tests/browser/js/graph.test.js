import { equal, ok, test } from "./harness.js";
import { edgesOf, keysOf, LATELY_MS, membershipsOf, nodesOf, pathsOf } from "/static/features/graph/flows.js";
import { frameOf } from "/static/features/graph/frame.js";
import { Layout } from "/static/features/graph/layout.js";

const direct = { sender_id: "ann", thread_id: "dm.ann.bot.cat", type: "direct" };
const posted = { sender_id: "ann", thread_id: "channel.a.t3", type: "channel", mentions: ["bot", "ann"] };
const edges = (...pairs) => pairs.map(([a, b]) => ({ key: `${a} ${b}`, ends: [a, b] }));
const people = (count) => Array.from({ length: count }, (_, n) => `p${n}`);

function laid(keys, between) {
  const layout = new Layout();
  layout.update(keys, between);
  layout.settle();
  return layout;
}

const far = (places, a, b) =>
  Math.hypot(places.get(a).x - places.get(b).x, places.get(a).y - places.get(b).y);

test("a message runs to its recipients, a post to its channel and on to whom it mentions", () => {
  equal(pathsOf(direct), [["ann", "bot"], ["ann", "cat"]]);
  equal(pathsOf(posted), [["ann", "~channel.a"], ["~channel.a", "bot"]]);
  equal(pathsOf({ ...posted, mentions: undefined }), [["ann", "~channel.a"]]);
});

test("both directions are one edge, which fades", () => {
  const back = { ...direct, thread_id: "dm.ann.bot", sender_id: "bot" };
  const now = 10 * LATELY_MS;
  const flow = [{ message: { ...back, sender_id: "ann" }, at: now - LATELY_MS / 2 }, { message: back, at: now }];
  equal(edgesOf(flow, now), [{ key: "ann bot", ends: ["ann", "bot"], weight: 1.5, last: now }]);
  equal(edgesOf(flow, now + LATELY_MS), []);
});

test("nodes are everybody, the channels, and rooms that edges lead to; large channels have no memberships", () => {
  const flow = [{ message: { sender_id: "ann", thread_id: "broadcast", type: "broadcast" }, at: 0 }];
  const found = nodesOf([{ id: "bot", kind: "agent" }], [{ name: "a", members: [] }], keysOf(edgesOf(flow, 0)));
  equal(found.map(({ key, kind }) => [key, kind]), [
    ["ann", "service"], ["bot", "agent"], ["~broadcast", "room"], ["~channel.a", "room"],
  ]);
  const members = membershipsOf([{ name: "big", members: people(31) }, { name: "a", members: ["ann"] }]);
  equal(members.map(({ ends }) => ends), [["ann", "~channel.a"]]);
});

test("the same network always has the same picture, in which those who talk are near and nobody is hidden", () => {
  const keys = ["a", "b", "c", "d"];
  const between = edges(["a", "b"], ["c", "d"]);
  const { places } = laid(keys, between);
  const other = laid([...keys].reverse(), between).places;
  for (const key of keys) ok(Math.hypot(places.get(key).x - other.get(key).x) < 1e-6);
  ok(far(places, "a", "b") < far(places, "a", "c") && far(places, "c", "d") < far(places, "b", "d"));
  const many = people(100);
  const star = laid(many, edges(...many.slice(1).map((key) => ["p0", key]))).places;
  const nearest = Math.min(...many.flatMap((a) => many.filter((b) => a < b).map((b) => far(star, a, b))));
  ok(nearest > 0.02, `nearest: ${nearest}`);
});

test("a settled layout stays until nodes or edges change, and forgets who goes", () => {
  const layout = laid(["a", "b"], edges(["a", "b"]));
  const before = { ...layout.places.get("a") };
  layout.update(["a", "b"], edges(["a", "b"]));
  ok(layout.settled);
  layout.update(["a", "b", "c"], edges(["a", "b"]));
  ok(!layout.settled);
  equal(layout.places.get("a"), before, "it moves on from where it is");
  layout.update(["b"], []);
  equal([...layout.places.keys()], ["b"]);
});

test("a layout is drawn within the room that there is", () => {
  const at = frameOf(new Map([["a", { x: -5, y: 0 }], ["b", { x: 5, y: 3 }]]), { width: 800, height: 600 });
  for (const { x, y } of [at("a"), at("b")]) ok(x > 0 && x < 800 && y > 0 && y < 600);
  equal(frameOf(new Map([["a", { x: 3, y: 3 }]]), { width: 100, height: 80 })("a"), { x: 50, y: 40 });
});
