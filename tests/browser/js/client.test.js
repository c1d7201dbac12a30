import { after, equal, eventually, fails, ok, test } from "./harness.js";
import { CallError, Client } from "/static/core/client.js";

/** The hub's end of a connection, spoken by hand. */
class Line {
  constructor(url, lines) {
    Object.assign(this, { url, readyState: 1, heard: [], closedWith: null });
    lines.push(this);
  }
  send(text) {
    this.heard.push(JSON.parse(text));
  }
  close(code) {
    Object.assign(this, { readyState: 3, closedWith: code });
  }
  says(frame) {
    this.onmessage({ data: JSON.stringify(frame) });
  }
  ends(code, reason = "") {
    this.readyState = 3;
    this.onclose({ code, reason });
  }
  /** The frames of this kind that the client has sent here. */
  all(op) {
    return this.heard.filter((frame) => frame.op === op);
  }
}

/** A client that tries again without a pause, its lines, and what it has told. */
function dialling(options = {}) {
  const [lines, told] = [[], []];
  const listener = {
    ready: (frame) => told.push(["ready", frame.resumed]),
    event: (frame) => told.push(["event", frame.seq]),
    signal: (frame) => told.push(["signal", frame.type]),
  };
  const Socket = function (url) {
    return new Line(url, lines);
  };
  const client = new Client("ws://hub", listener, { Socket, random: () => -1, ...options });
  after(() => client.leave());
  return { client, lines, told };
}

const HELLO = { op: "hello", epoch: "E1", network: "test", limits: {} };
const ready = (cursor = 0, resumed = false) => ({
  op: "ready", participant: "ann", cursor, resumed, operations: [{ name: "reply" }],
  participants: [], channels: [], threads: [],
});
const event = (prev, seq) => ({ op: "event", prev, seq, tseq: seq, message: { id: `m${seq}` } });

/** A client that has joined. */
function joined(cursor = 0) {
  const made = dialling();
  made.client.join("ann");
  made.lines[0].says(HELLO);
  made.lines[0].says(ready(cursor));
  return { ...made, line: made.lines[0] };
}

/** The next connection, once the client has made it and the hub has said hello. */
async function next(lines, n, hello = HELLO) {
  const line = await eventually(() => lines[n], `connection ${n} was never made`);
  line.says(hello);
  return line;
}

test("it identifies itself as a person after hello, with a token if there is one", () => {
  const { client, lines } = dialling();
  client.join("ann", "secret");
  equal(lines[0].heard, []);
  lines[0].says(HELLO);
  const [identify] = lines[0].heard;
  equal([identify.op, identify.participant, identify.kind, identify.token], ["identify", "ann", "human", "secret"]);
  equal([identify.latest, "cursor" in identify], [true, false]);
  equal(lines[0].url, "ws://hub", "the token is in no address");
  equal("token" in joined().line.heard[0], false);
});

test("what the hub tells is handed on in order", () => {
  const { client, line, told } = joined();
  line.says(event(0, 3));
  line.says({ op: "signal", type: "typing" });
  line.says(event(3, 4));
  equal(told, [["ready", false], ["event", 3], ["signal", "typing"], ["event", 4]]);
  equal(client.status.value.state, "ready");
  ok(client.may("reply") && !client.may("add_token"));
});

test("an answer settles its call and no other, a refusal is an error with the hub's words", async () => {
  const { client, line } = joined();
  const asked = ["list_threads", "list_channels", "reply"].map((name) => client.call(name, { limit: 1 }));
  const [one, two, three] = line.all("call");
  equal([one.name, one.args], ["list_threads", { limit: 1 }]);
  line.says({ op: "result", ref: two.ref, value: "second" });
  line.says({ op: "error", ref: three.ref, code: "unknown_message", message: "no m9", details: { near: "m8" } });
  line.says({ op: "result", ref: one.ref, value: "first" });
  const [first, second, third] = await Promise.allSettled(asked);
  equal([first.value, second.value], ["first", "second"]);
  ok(third.reason instanceof CallError);
  equal([third.reason.code, third.reason.message, third.reason.details], ["unknown_message", "no m9", { near: "m8" }]);
});

test("what the hub refuses for now is asked again under the same cid", async () => {
  const { client, line } = joined();
  const said = client.write("reply", {}, "cid1");
  const [{ ref }] = line.all("call");
  line.says({ op: "error", ref, code: "rate_limited", message: "slow down", temporary: true, retry_after_s: 0 });
  await eventually(() => line.all("call").length === 2);
  equal(line.all("call")[1], line.all("call")[0]);
  line.says({ op: "result", ref, value: "done" });
  equal(await said, "done");
});

test("what is larger than the hub accepts is refused here, as the hub would close the connection for good", async () => {
  const { client, lines } = dialling();
  client.join("ann");
  lines[0].says({ ...HELLO, limits: { frame_bytes: 1000 } });
  lines[0].says(ready());
  const sent = lines[0].heard.length;
  const text = "ä".repeat(500); // 1000 bytes, and the frame around them
  for (const name of ["signal", "call"]) {
    await fails(async () => client[name]("typing", { text }), "bytes are too many, the hub accepts 1000");
  }
  client.signal("typing", "broadcast", text.slice(50));
  equal(lines[0].heard.length, sent + 1);
});

test("calls over the rate limit are repeated one at a time", async () => {
  const { client, line } = joined();
  const said = ["one", "two", "three"].map((cid) => client.call("reply", {}, cid));
  const first = line.all("call");
  for (const { ref } of first) line.says({ op: "error", ref, code: "rate_limited", temporary: true, retry_after_s: 0 });
  for (const n of [0, 1, 2]) {
    await eventually(() => line.all("call").length === 4 + n);
    equal(line.all("call").at(-1), first[n]);
    line.says({ op: "result", ref: first[n].ref, value: n });
  }
  equal(await Promise.all(said), [0, 1, 2]);
});

test("what is asked before anybody has joined is said afterwards, typing is not", () => {
  const { client, lines } = dialling();
  client.join("ann");
  client.call("list_threads").catch(() => {});
  client.signal("typing", "dm.ann.bob");
  lines[0].says(HELLO);
  equal(lines[0].all("call"), []);
  lines[0].says(ready());
  equal([lines[0].all("call").length, lines[0].all("signal")], [1, []]);
  client.signal("typing", "dm.ann.bob");
  equal(lines[0].all("signal"), [{ op: "signal", type: "typing", thread_id: "dm.ann.bob", data: null }]);
});

test("what ready left out of a large network is asked for before anybody is told", () => {
  const { client, lines, told } = dialling();
  client.join("ann");
  const [line] = lines;
  line.says(HELLO);
  client.listener.ready = (frame) => told.push([frame.participants.map(({ id }) => id), frame.channels.length]);
  line.says({ ...ready(), left_out: ["participants", "channels"] });
  line.says({ op: "signal", type: "presence" });
  const answers = (value) => line.says({ op: "result", ref: line.all("call").at(-1).ref, value });
  const asked = () => [line.all("call").at(-1).name, line.all("call").at(-1).args];
  answers({ participants: [{ id: "bob" }], more: true });
  equal(asked(), ["list_participants", { after: "bob" }]);
  answers({ participants: [{ id: "eve" }] });
  equal([asked()[0], told], ["list_channels", []]);
  answers({ channels: [{ name: "general" }] });
  equal(told, [[["bob", "eve"], 1], ["signal", "presence"]]);
});

test("a lost connection is resumed from the last event, with what was not answered", async () => {
  const { client, lines, line, told } = joined(5);
  line.says(event(5, 8));
  const said = client.write("reply", { text: "once" }, "cid1");
  line.ends(1006);
  equal(client.status.value.state, "waiting");
  const again = await next(lines, 1);
  equal(again.heard[0].cursor, { epoch: "E1", seq: 8 });
  again.says(ready(8, true));
  const [repeated] = again.all("call");
  equal([repeated.cid, repeated.args], ["cid1", { text: "once" }]);
  again.says({ op: "result", ref: repeated.ref, value: "stored" });
  equal(await said, "stored");
  equal(line.all("call").length, 1);
  line.says(event(8, 9));
  line.ends(4500, "too late");
  equal(told.at(-1), ["ready", true], "what comes by the old one counts no more");
  equal(client.status.value.state, "ready");
  again.ends(1006);
  const other = await next(lines, 2, { ...HELLO, epoch: "E2" });
  equal("cursor" in other.heard[0], false, "another log is not resumed");
});

test("a hole in the stream is not shown but asked for", async () => {
  const { lines, line, told } = joined(5);
  line.says(event(5, 6));
  line.says(event(7, 8));
  equal(told.at(-1), ["event", 6]);
  equal(line.closedWith, 4004);
  equal((await next(lines, 1)).heard[0].cursor.seq, 6);
});

test("events are acknowledged soon, and at once when there are many", async () => {
  const { line } = joined();
  line.says(event(0, 1));
  line.says(event(1, 2));
  await eventually(() => line.all("ack").some(({ seq }) => seq === 2));
  equal(line.all("ack").map(({ seq }) => seq), [0, 2], "two events, one acknowledgement");
  for (let seq = 3; seq <= 66; seq++) line.says(event(seq - 1, seq));
  equal(line.all("ack").at(-1).seq, 66);
});

test("a close code that forbids it is the end, a hub that stops is come back to", async () => {
  const { client, lines, line } = joined();
  line.says({ op: "error", code: "auth_failed", message: "the token was revoked" });
  line.ends(4504, "revoked");
  equal(client.status.value, { state: "refused", code: 4504, reason: "the token was revoked" });
  client.retry();
  equal(lines.length, 1);
  const other = joined();
  other.line.says({ op: "reconnect", after_s: 0 });
  await next(other.lines, 1);
});

test("tries are further and further apart, never further than ten seconds, and one at a time", () => {
  const { client, lines } = dialling({ random: () => 1 });
  client.join("ann");
  client.retry();
  equal(lines.length, 1);
  const waits = [];
  for (let n = 0; n < 9; n++) {
    const asked = Date.now();
    lines[n].ends(1006);
    waits.push(client.status.value.until - asked);
    client.retry();
  }
  for (let n = 1; n < waits.length; n++) ok(waits[n] >= waits[n - 1] - 100, waits);
  ok(waits[0] < 500 && waits.at(-1) > 9000 && waits.at(-1) < 10_500, waits);
});

test("who leaves is not joined anew, and what was asked fails", async () => {
  const { client, lines, line } = joined();
  const asked = client.call("list_threads");
  client.leave();
  await fails(() => asked, "left");
  equal(line.closedWith, 1000);
  line.onclose({ code: 1000, reason: "" });
  await Promise.resolve();
  equal([lines.length, client.status.value.state], [1, "out"]);
});

test("silence is noticed whenever an answer is waited for, and only then", async () => {
  const { client, line } = joined();
  const first = client.call("list_threads");
  line.says({ op: "result", ref: line.all("call")[0].ref, value: 1 });
  await first;
  equal(client.silenceTimer, 0, "nobody waits for anything");
  client.call("list_threads").catch(() => {});
  ok(client.silenceTimer !== 0, "an answer is waited for again");
  client.leave();
  equal(client.silenceTimer, 0);
});

test("a call that takes long is waited for while the hub answers others", async () => {
  const { client, line, lines } = joined();
  let answer = null;
  client.call("digest").then((value) => (answer = value));
  client.silent();
  const [digest, probe] = line.all("call");
  line.says({ op: "result", ref: probe.ref, value: {} });
  line.says({ op: "result", ref: digest.ref, value: "news" });
  await eventually(() => answer === "news");
  equal([lines.length, line.closedWith], [1, null]);
});

test("an invalid name or address is refused at once instead of tried again", async () => {
  const { client, lines } = dialling();
  client.join("an n");
  lines[0].says(HELLO);
  lines[0].says({ op: "error", code: "bad_request", message: "participant: not a name", temporary: false });
  equal(client.status.value, { state: "refused", code: 4501, reason: "participant: not a name" });
  equal(lines[0].closedWith, 1000);
  await fails(async () => new Client("127.0.0.1:4820"), "ws://host:port, not 127.0.0.1:4820");
});

test("a hub that is silent before a client has joined is dialled again", async () => {
  const { client, lines } = dialling();
  client.join("ann");
  client.silent();
  await eventually(() => lines.length === 2);
});
