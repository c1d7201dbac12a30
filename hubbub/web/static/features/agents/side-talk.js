// A conversation beside the form with the agent as it is there: only its model is asked, and nothing is kept.
import { html, useState } from "../../core/ui.js";
import { Prose } from "../../parts/prose.js";
import { words } from "./texts.js";

export function SideTalk({ app, model, instruction }) {
  const [messages, setMessages] = useState([]);
  const [text, setText] = useState("");
  const [{ busy, problem }, setState] = useState({ busy: false, problem: null });
  if (!model) return null;
  const ask = async (event) => {
    event.preventDefault();
    const all = [...messages, { role: "user", text }];
    setMessages(all);
    setText("");
    setState({ busy: true, problem: null });
    try {
      const answer = await app.client.call("ask_model", { model, instruction, messages: all.slice(-20) });
      setMessages([...all, { role: "assistant", text: answer.text }]);
      setState({ busy: false, problem: null });
    } catch (error) {
      setMessages(messages);
      setText((now) => now || text); // what was begun meanwhile stays
      setState({ busy: false, problem: error.message });
    }
  };
  return html`<section class="side-talk" aria-label=${words.trial}>
    <div class="section"><h2>${words.trial}</h2></div>
    <p class="quiet small">${words.trialHint}</p>
    <ol aria-live="polite">${messages.map(({ role, text: said }, n) => html`<li key=${n} class=${role}>
      ${role === "user" ? html`<p dir="auto">${said}</p>` : html`<${Prose} app=${app} text=${said} />`}</li>`)}</ol>
    ${busy && html`<p class="quiet small" role="status">${words.answering}</p>`}
    ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
    <form onSubmit=${ask}><input aria-label=${words.say} placeholder=${words.say} autocomplete="off" dir="auto" value=${text}
      onInput=${(event) => setText(event.target.value)} />
      <button type="submit" disabled=${busy || !text.trim() || !instruction.trim()}>${words.ask}</button></form>
  </section>`;
}
