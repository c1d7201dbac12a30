// Draws a sequence diagram: sticky headers, lifelines, bars for turns, a line per message.
import { duration } from "../../core/time.js";
import { html, useMemo, useRef } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { outcomeWord } from "../../parts/outcome.js";
import { useSize } from "../../parts/size.js";
import { t } from "../../texts.js";
import { HEAD, layoutOf } from "./layout.js";
import { sentenceOf, wordsOf } from "./table.js";

/** `here` returns the address that opens an item on the right: (kind, id) => href. */
export function Diagram({ app, story, here }) {
  const box = useRef(null);
  const size = useSize(box);
  const plan = useMemo(() => size && layoutOf(story, size.width), [story, size?.width]);
  return html`
    <div class="sequence" ref=${box} role="group" aria-label=${t.interaction.diagram}>
      ${plan && html`<${Drawing} app=${app} plan=${plan} story=${story} here=${here} />`}
    </div>
  `;
}

function Drawing({ app, plan, story, here }) {
  const { width, height, column, heads, lines, bars } = plan;
  const first = Date.parse(story.rows[0]?.message.sent_at);
  return html`
    <ol class="heads" style=${{ width: `${width}px`, height: `${HEAD}px` }}>
      ${heads.map(
        ({ id, x }) => html`<li key=${id} style=${{ left: `${x}px`, maxWidth: `${column}px` }}>
          <a href=${here("participant", id)}><${Avatar} app=${app} id=${id} /><span class="cut">${app.state.nameOf(id)}</span></a>
        </li>`,
      )}
    </ol>
    <svg width=${width} height=${height} role="group" aria-label=${t.interaction.messages}>
      <${Arrowheads} />
      ${heads.map(({ id, x }) => html`<line key=${id} class="life" x1=${x} x2=${x} y2=${height} />`)}
      ${bars.map((bar) => html`<${Bar} key=${bar.turn.id} app=${app} bar=${bar} here=${here} />`)}
      ${lines.map((line) => {
        const after = Date.parse(line.message.sent_at) - first;
        return html`<${Line} key=${line.message.id} line=${line} row=${story.rows[line.row]} after=${after}
          width=${width} here=${here} />`;
      })}
    </svg>
  `;
}

function Arrowheads() {
  const box = { viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" };
  return html`
    <defs>
      <marker id="wakes-head" ...${box}>
        <path class="head" d="M0 0 8 4 0 8z" />
      </marker>
      <marker id="reach-head" ...${box}>
        <path class="open-head" d="M1 1 7 4 1 7" />
      </marker>
    </defs>
  `;
}

function Line({ line, row, after, width, here }) {
  const { message, y, dot, bus, arrows, label } = line;
  const drawn = html`
    <title>${wordsOf(message, 400)}</title>
    <rect class="room" x="0" y=${y - 26} width=${width} height="40" />
    <text class="when" x="4" y=${y + 4}>${after > 0 ? `+${duration(after)}` : ""}</text>
    ${bus && html`<line class="bus" x1=${bus.from} x2=${bus.to} y1=${y} y2=${y} />`}
    ${arrows.map(
      ({ from, to, wakes }) => html`<line class=${wakes ? "arrow wakes" : "arrow"} x1=${from} x2=${to}
        y1=${y} y2=${y} marker-end=${wakes ? "url(#wakes-head)" : "url(#reach-head)"} />`,
    )}
    ${(bus || !arrows.length) && html`<circle class="dot" cx=${dot} cy=${y} r="4.5" />`}
    <text class="words" x=${label.x} y=${y - 8}>${wordsOf(message, label.most)}</text>
  `;
  const says = sentenceOf(row);
  if (message.closed) return html`<g class="closed" role="img" aria-label=${says}>${drawn}</g>`;
  return html`<a class="said" href=${here("message", message.id)} aria-label=${says}>${drawn}</a>`;
}

function Bar({ app, bar: { turn, x, y, width, height, open }, here }) {
  const says = t.interaction.turn(turn.id, outcomeWord(open ? null : turn.outcome ?? "finished"));
  const shape = html`
    <title>${says}</title>
    <rect class=${open ? "turn-bar open" : "turn-bar"} x=${x} y=${y} width=${width} height=${height} rx="2" />
  `;
  if (!app.state.owner.value) return html`<g>${shape}</g>`;
  return html`<a class="to-turn" href=${here("turn", turn.id)} aria-label=${says}>${shape}</a>`;
}
