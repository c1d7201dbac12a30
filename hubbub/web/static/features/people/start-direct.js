// Starts a direct conversation with one or several participants.
import { html, useState } from "../../core/ui.js";
import { match } from "../../core/fuzzy.js";
import { Avatar } from "../../parts/avatar.js";
import { Dialog } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";
import { peopleOf } from "./order.js";

const MOST = 7; // others; a direct thread has at most eight members

export function StartDirect({ app, close }) {
  const [word, setWord] = useState("");
  const [picked, setPicked] = useState([]);
  const found = peopleOf(app.state.participants.value.values(), app.state.me.value).filter(
    ({ id }) => match(word, id) !== null || match(word, app.state.nameOf(id)) !== null,
  );
  const toggle = (id) => {
    setPicked(picked.includes(id) ? picked.filter((each) => each !== id) : [...picked, id]);
    setWord("");
  };
  const start = (event) => {
    event.preventDefault();
    const names = picked.length ? picked : found.slice(0, 1).map(({ id }) => id);
    if (!names.length) return;
    close();
    app.talkTo(...names);
  };
  return html`<${Dialog} title=${t.sidebar.startDirect} close=${close}>
    <form class="body" onSubmit=${start}>
      <label class="field">${t.people.whom}
        <input name="whom" data-focus autocomplete="off" placeholder=${t.people.filter} value=${word}
          onInput=${(event) => setWord(event.target.value)} />
        <small>${t.people.groupHint(MOST)}</small>
      </label>
      <ul class="pick" aria-label=${t.people.title}>
        ${found.map(({ id, card }) => {
          const on = picked.includes(id);
          return html`<li key=${id}><label class="list-row">
            <input type="checkbox" checked=${on} disabled=${!on && picked.length >= MOST}
              onChange=${() => toggle(id)} />
            <${Avatar} app=${app} id=${id} presence=${true} />
            <span class="name" dir="auto">${app.state.nameOf(id)}</span><span class="cut quiet small">${card?.description}</span>
          </label></li>`;
        })}
      </ul>
      ${!found.length && html`<p class="quiet">${t.people.nobody}</p>`}
      <div class="actions">
        <button type="button" onClick=${close}>${t.cancel}</button>
        <button type="submit" class="primary" disabled=${!picked.length && !found.length}>
          <${Icon} name="message" />${picked.length > 1 ? t.people.startGroup(picked.length) : t.people.start}
        </button>
      </div>
    </form>
  </${Dialog}>`;
}
