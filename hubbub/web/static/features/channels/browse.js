// All channels with their descriptions, to join.
import { html, useEffect, useState } from "../../core/ui.js";
import { match } from "../../core/fuzzy.js";
import { Dialog } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";
import { join } from "./actions.js";

export function Browse({ app, close }) {
  const [word, setWord] = useState("");
  useEffect(() => void app.tried(() => app.refreshChannels()), []);
  const channels = [...app.state.channels.value.values()];
  const found = channels.filter(({ name, description }) => match(word, `${name} ${description}`) !== null);
  const go = (name) => {
    close();
    join(app, name);
  };
  const show = (name) => {
    close();
    app.show(`channel.${name}`);
  };
  const create = () => {
    close();
    app.run("channel-create");
  };
  return html`<${Dialog} title=${t.sidebar.channels} close=${close}>
    <div class="body">
      <input type="search" data-focus aria-label=${t.channels.filter} placeholder=${t.channels.filter}
        value=${word} onInput=${(event) => setWord(event.target.value)} />
      <ul class="browse">
        ${found.map((channel) => html`<li key=${channel.name}>
          <${Icon} name="hash" />
          <div>
            <b>${channel.name}</b>${" "}
            <span class="quiet small">${t.channels.members(channel.members.length)}</span>
            ${channel.description && html`<p class="quiet" dir="auto">${channel.description}</p>`}
          </div>
          ${channel.joined
            ? html`<button class="plain" onClick=${() => show(channel.name)}>${t.channels.show}</button>`
            : html`<button onClick=${() => go(channel.name)} aria-label=${t.channels.joinThe(channel.name)}>
                ${t.channels.joinShort}</button>`}
        </li>`)}
      </ul>
      ${!found.length && html`<p class="quiet">${t.channels.none}</p>`}
      <div class="actions">
        <button onClick=${create}><${Icon} name="plus" />${t.sidebar.createChannel}</button>
      </div>
    </div>
  </${Dialog}>`;
}
