// `#/network`: the network as a picture or a list.
import { Client } from "../../core/client.js";
import { kindOf } from "../../core/ids.js";
import {
  computed, effect, html, signal, useEffect, useLayoutEffect, useMemo, useRef, useSignal, useState,
} from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Choice } from "../../parts/choice.js";
import { Icon, iconOfThread } from "../../parts/icon.js";
import { Activity, Presence } from "../../parts/presence.js";
import { useSize } from "../../parts/size.js";
import { t } from "../../texts.js";
import { edgesOf, keysOf, LATELY_MS, membershipsOf, nodesOf, pathsOf } from "./flows.js";
import { frameOf, piecesOf } from "./frame.js";
import { Layout } from "./layout.js";

const AGE_EVERY_MS = 5000; // edges fade
const LAYOUT_MS = 5; // per frame, for the layout

export function Network({ app }) {
  const asList = app.storage.remembered("network:list", false);
  const [everything, setEverything] = useState(false);
  const source = useFlow(app, everything);
  const graph = useGraph(app, source);
  const busy = everything && !(source.ofAll && source.status.value.state === "ready");
  return html`
    <header class="title">
      <h1>${t.graph.title}</h1>
      <${Tools} app=${app} asList=${asList} everything=${everything} setEverything=${setEverything}
        busy=${busy} />
    </header>
    <div class="network-view">
      ${everything && source.status.value.state === "refused" &&
      html`<p class="problem" role="alert">${source.status.value.reason}</p>`}
      ${asList.value
        ? html`<${NetworkList} app=${app} ...${graph} />`
        : html`<${Moving} app=${app} source=${source} ...${graph} />`}
    </div>
  `;
}

function Tools({ app, asList, everything, setEverything, busy }) {
  return html`
    <div class="network-tools">
      ${app.state.owner.value &&
      html`<label class="option" title=${t.graph.everythingHint}>
        <input type="checkbox" checked=${everything} aria-busy=${busy}
          onChange=${(event) => setEverything(event.target.checked)} />
        ${t.graph.everything}
      </label>`}
      <${Choice} label=${t.graph.shownAs} choices=${[[false, t.graph.asPicture], [true, t.graph.asList]]}
        value=${asList.value} choose=${(list) => (asList.value = list)} />
    </div>
  `;
}

/** The current nodes and edges; edges fade with time. */
function useGraph(app, source) {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || (now.value = Date.now()), AGE_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const graph = useMemo(() => {
    const channels = computed(() => [...app.state.channels.value.values()]);
    const memberships = computed(() => membershipsOf(channels.value));
    const edges = computed(() => {
      const flow = source.before.concat(source.flow.value).map((each) => asKnown(app, each));
      return edgesOf(flow, Math.max(now.value, flow.at(-1)?.at ?? 0));
    });
    // Every message changes the edges, but rarely the nodes: keep the same list for those.
    const linked = computed(() => keysOf([...edges.value, ...memberships.value]).join(" "));
    const nodes = computed(() =>
      nodesOf(app.state.participants.value.values(), channels.value, linked.value.split(" ").filter(Boolean)),
    );
    return { nodes, edges, memberships };
  }, [source]);
  return { nodes: graph.nodes.value, edges: graph.edges.value, memberships: graph.memberships.value };
}

/** The reader's own messages arrive without mentions at first. */
function asKnown(app, { message, at }) {
  const thread = app.state.threads.peek().get(message.thread_id);
  return { message: thread?.at(message.tseq) ?? message, at };
}

/** The picture, animated until its layout has settled. */
function Moving({ app, source, nodes, edges, memberships }) {
  const box = useRef(null);
  const size = useSize(box);
  const [layout] = useState(() => new Layout());
  useLayoutEffect(() => {
    layout.update(nodes.map(({ key }) => key), [...edges, ...memberships]);
    if (!size) return undefined;
    const pieces = piecesOf(box.current);
    const arrange = () => pieces.arrange(frameOf(layout.places, size));
    arrange();
    let frame = 0;
    const move = () => {
      const until = performance.now() + LAYOUT_MS;
      while (!layout.settled && performance.now() < until) layout.step();
      arrange();
      frame = layout.settled ? 0 : requestAnimationFrame(move);
    };
    if (!layout.settled) frame = requestAnimationFrame(move);
    return () => cancelAnimationFrame(frame);
  }, [nodes, edges, memberships, size]);
  return html`
    <div class="network-picture" ref=${box}>
      <${Picture} app=${app} nodes=${nodes} edges=${edges} memberships=${memberships} />
      ${size && html`<${Pulses} flow=${source.flow} places=${layout.places} size=${size} />`}
    </div>
  `;
}

// The network as a list: participants with their activity and recent contacts.

function NetworkList({ app, nodes, edges }) {
  const names = new Map(nodes.map(({ key, name }) => [key, name]));
  return html`
    <ul class="network-list">
      ${nodes.map(
        (node) => html`<${Row} key=${node.key} app=${app} node=${node} names=${names}
          edges=${edges.filter(({ ends }) => ends.includes(node.key))} />`,
      )}
    </ul>
  `;
}

function Row({ app, node: { key, kind, name, thread }, edges, names }) {
  const others = [...edges]
    .sort((a, b) => b.weight - a.weight)
    .map(({ ends }) => names.get(ends[0] === key ? ends[1] : ends[0]));
  const href =
    kind === "room"
      ? app.router.href("thread", [thread])
      : app.router.href("network", [], { kind: "participant", id: key });
  return html`
    <li>
      ${kind !== "room" && html`<${Avatar} app=${app} id=${key} />`}
      <a href=${href}>${name}</a>
      ${kind !== "room" && html`<${Presence} app=${app} id=${key} told=${true} />`}
      ${kind === "agent" && html`<${Activity} app=${app} id=${key} />`}
      <span class="quiet">${others.length ? t.graph.spokeWith(others.join(", ")) : t.graph.quiet}</span>
    </li>
  `;
}

// The picture: edges as lines in an SVG, nodes as links above it. frame.js sets their positions
// without re-rendering.

const FULL = 12; // weight from which an edge gets no thicker

function Picture({ app, nodes, edges, memberships }) {
  const belongs = useMemo(
    () => memberships.map(({ key, ends: [a, b] }) => html`
      <line key=${key} class="belongs" data-from=${a} data-to=${b} />`),
    [memberships],
  );
  const drawn = useMemo(
    () => nodes.map((node) => html`<${Node} key=${node.key} app=${app} node=${node} />`),
    [nodes],
  );
  return html`
    <svg width="100%" height="100%" aria-hidden="true">
      <g>${belongs}</g>
      <g>${edges.map((edge) => html`<${Edge} key=${edge.key} ...${edge} />`)}</g>
    </svg>
    <ul class="nodes" aria-label=${t.graph.nodes}>${drawn}</ul>
  `;
}

function Edge({ ends: [a, b], weight }) {
  return html`
    <line class="flow" data-from=${a} data-to=${b} stroke-width=${1 + 5 * Math.min(1, weight / FULL)}
      stroke-opacity=${0.25 + 0.65 * Math.min(1, weight)} />
  `;
}

function Node({ app, node: { key, kind, name, thread } }) {
  if (kind === "room") {
    const title = app.state.titleOf(thread);
    return html`
      <li class="node room" data-node=${key}>
        <a href=${app.router.href("thread", [thread])}>
          <${Icon} name=${iconOfThread(kindOf(thread))} size=${14} />
          <span class="cut">${title.replace(/^#/, "")}</span>
        </a>
      </li>
    `;
  }
  const here = app.state.participant(key)?.present ?? false;
  return html`
    <li class="node" data-node=${key} data-present=${here ? "" : null}>
      <a href=${app.router.href("network", [], { kind: "participant", id: key })}>
        <${Avatar} app=${app} id=${key} size=${2.25} presence=${true} />
        <span class="name">${name}</span>
        <span class="doing"><${Activity} app=${app} id=${key} /></span>
      </a>
    </li>
  `;
}

// A dot that runs along the edges of each incoming message. With reduced motion there is none: the
// thicker edge shows it.

const LASTS_MS = 700;
const MOST = 24; // at once

function Pulses({ flow, places, size }) {
  const box = useRef(null);
  const latest = useRef(null);
  latest.current = { places, size };
  useEffect(() => {
    let seen = flow.peek().at(-1);
    return effect(() => {
      const last = flow.value.at(-1);
      if (last && last !== seen) run(box.current, pathsOf(last.message), latest.current);
      seen = last;
    });
  }, [flow]);
  return html`<div class="pulses" ref=${box} aria-hidden="true"></div>`;
}

function run(box, paths, { places, size }) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches || document.hidden) return;
  const at = frameOf(places, size);
  const known = paths.filter(([from, to]) => places.has(from) && places.has(to));
  for (const [from, to] of known.slice(0, MOST - box.childElementCount)) {
    const dot = document.createElement("i");
    box.append(dot);
    const place = ({ x, y }) => ({ transform: `translate(${x}px, ${y}px)` });
    const running = dot.animate([place(at(from)), place(at(to))], {
      duration: LASTS_MS,
      delay: from === paths[0][0] ? 0 : LASTS_MS, // from a room, once it has arrived there
      easing: "ease-in-out",
      fill: "backwards",
    });
    running.onfinish = running.oncancel = () => dot.remove();
  }
}

// The source of the picture: the reader's own messages, or, for owners who choose it, all messages.
// For those, a second connection observes the whole log while the view is open.

const KEPT = 600; // messages

/** {before, flow, status, ofAll}: `before` a list and `flow` a signal of {message, at}, oldest first. */
function useFlow(app, everything) {
  const [own] = useState(() => ({
    flow: app.state.flow,
    status: app.client.status,
    before: knownBefore(app),
    ofAll: false,
  }));
  const [all, setAll] = useState(null);
  useEffect(() => {
    if (!everything) return undefined;
    const watched = watch(app, own.before.concat(own.flow.peek()));
    setAll(watched);
    return () => {
      watched.client.leave();
      setAll(null);
    };
  }, [everything]);
  return all ?? own;
}

function watch(app, before) {
  const { url, me, token } = app.client;
  const flow = signal([]);
  const client = new Client(
    url,
    {
      ready: () => {},
      signal: () => {},
      event: ({ message }) => {
        flow.value = [...flow.peek().slice(1 - KEPT), { message, at: Date.now() }];
      },
    },
    { observe: true },
  );
  client.join(me, token);
  return { client, flow, before, status: client.status, ofAll: true };
}

/** Recent messages the page already had, or got on joining. */
function knownBefore(app) {
  const since = Date.now() - LATELY_MS;
  const heard = new Set(app.state.flow.peek().map(({ message }) => message.seq));
  const found = [];
  for (const thread of app.state.threads.peek().values()) {
    for (const message of thread.messages.values()) {
      const at = Date.parse(message.sent_at);
      if (at > since && !heard.has(message.seq)) found.push({ message, at });
    }
  }
  return found;
}
