// `#/network`: the picture, or a list of the same.
import {
  computed, html, useEffect, useLayoutEffect, useMemo, useRef, useSignal, useState,
} from "../../core/ui.js";
import { useSize } from "../../parts/size.js";
import { t } from "../../texts.js";
import { edgesOf, keysOf, membershipsOf, nodesOf } from "./flows.js";
import { frameOf, piecesOf } from "./frame.js";
import { Layout } from "./layout.js";
import { NetworkList } from "./list.js";
import { Picture } from "./picture.js";
import { Pulses } from "./pulses.js";
import { useFlow } from "./watching.js";

const AGE_EVERY_MS = 5000; // edges fade
const LAYOUT_MS = 5; // of each frame, for the layout

export function Network({ app }) {
  const asList = useSignal(app.storage.get("network:list", false));
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
  const choose = (list) => {
    asList.value = list;
    app.storage.set("network:list", list);
  };
  const button = (list, text) => html`
    <button type="button" aria-pressed=${asList.value === list} onClick=${() => choose(list)}>
      ${text}
    </button>
  `;
  return html`
    <div class="network-tools">
      ${app.state.owner.value &&
      html`<label class="option" title=${t.graph.everythingHint}>
        <input type="checkbox" checked=${everything} aria-busy=${busy}
          onChange=${(event) => setEverything(event.target.checked)} />
        ${t.graph.everything}
      </label>`}
      <div class="choice" role="group" aria-label=${t.graph.shownAs}>
        ${button(false, t.graph.asPicture)}${button(true, t.graph.asList)}
      </div>
    </div>
  `;
}

/** Nodes and edges as they are now; edges grow old while nothing happens. */
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
    // With every message there are other edges, but hardly ever other nodes: those stay the same.
    const linked = computed(() => keysOf([...edges.value, ...memberships.value]).join(" "));
    const nodes = computed(() =>
      nodesOf(app.state.participants.value.values(), channels.value, linked.value.split(" ").filter(Boolean)),
    );
    return { nodes, edges, memberships };
  }, [source]);
  return { nodes: graph.nodes.value, edges: graph.edges.value, memberships: graph.memberships.value };
}

/** What oneself has said is known without its mentions at first. */
function asKnown(app, { message, at }) {
  const thread = app.state.threads.peek().get(message.thread_id);
  return { message: thread?.at(message.tseq) ?? message, at };
}

/** The picture, moving until its layout has settled. */
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
