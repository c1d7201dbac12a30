// One poll: its options, the reader's vote, and the result.
import { count } from "../../core/numbers.js";
import { visible } from "../../core/markdown.js";
import { html, useState } from "../../core/ui.js";
import { Loading } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { useWatched } from "../../parts/watched.js";
import { usePending } from "../../parts/pending.js";
import { words } from "./texts.js";

export function Poll({ app, id, news }) {
  const [given, setGiven] = useState(null); // the state after the reader's vote, until the poll is read again
  const { busy, problem, run } = usePending();
  const { value: read, error } = useWatched(() => app.client.call("read_poll", { poll: id }), {
    key: id, signs: () => news.signs(id),
  });
  if (!read) return html`<${Loading} found=${{ value: read, error }} />`;
  const value = given?.after === read ? given.value : read;
  const ask = (operation, args) => run(async () => {
    await app.client.write(operation, { poll: id, ...args });
    setGiven({ after: read, value: await app.client.call("read_poll", { poll: id }) });
  });
  const { poll, options } = value;
  const choose = (number) => {
    const next = chosen(value, number).map(String);
    return next.length ? ask("vote", { options: next }) : ask("retract_vote", {});
  };
  const isOpen = poll.state === "open" && app.client.may("vote");
  return html`<section class="poll" aria-label=${words.poll(visible(poll.question))}>
    <p class="quiet small"><${Icon} name="poll" size=${14} /> ${words.asks(poll.created_by)}</p>
    <p class="question" dir="auto">${visible(poll.question)}</p>
    <ol>${options.map((option) => html`<${Option} key=${option.number} option=${option} value=${value}
      choose=${isOpen && !busy ? () => choose(option.number) : null} isOpen=${isOpen} />`)}</ol>
    ${value.outcome && html`<p class="outcome">
      <b>${words.outcomes[value.outcome](value.winners.map(visible).join(", "))}</b></p>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <${Foot} app=${app} poll=${poll} busy=${busy} close=${() => ask("close_poll", {})} />
  </section>`;
}

/** The numbers to vote for after clicking one. */
function chosen({ poll, mine }, number) {
  if (mine.includes(number)) return mine.filter((each) => each !== number);
  return poll.multiple ? [...mine, number] : [number];
}

function Option({ option: { number, text, votes, voters }, value: { poll, options, mine, winners }, choose, isOpen }) {
  const isMine = mine.includes(number);
  const most = Math.max(1, poll.voters, ...options.map((each) => each.votes ?? 0));
  const told = votes == null ? "" : words.votes(votes);
  const inside = html`
    <i style=${{ width: `${(100 * (votes ?? 0)) / most}%` }} />
    <span class="text" dir="auto">${isMine && html`<${Icon} name="check" size=${14} />`}${visible(text)}</span>
    ${votes != null && html`<span class="number">${count(votes)}</span>`}`;
  const name = words.option(visible(text), told, isMine);
  const title = voters?.length ? voters.join(", ") : null;
  const isWinner = winners.includes(text) ? "" : null;
  if (!isOpen) {
    return html`<li><div class="option-of" data-winner=${isWinner} role="img" aria-label=${name} title=${title}>
      ${inside}</div></li>`;
  }
  return html`<li><button type="button" class="option-of" aria-pressed=${isMine} aria-label=${name} title=${title}
    aria-disabled=${choose === null} onClick=${() => choose?.()}>${inside}</button></li>`;
}

function Foot({ app, poll, busy, close }) {
  const [sure, setSure] = useState(false);
  const { state, voters, secret, multiple, quorum, deadline, closed_at: at, closed_by: by, created_by: author } = poll;
  const mayClose = state === "open" && app.client.may("close_poll") &&
    (author === app.state.me.value || app.state.owner.value);
  return html`<div class="poll-foot">
    <p class="quiet small">
      <span>${words.voted(voters)}</span>
      ${quorum > 0 && html`<span>${words.quorumOf(quorum)}</span>`}
      ${secret && html`<span>${words.isSecret}</span>`}
      ${multiple && html`<span>${words.isMultiple}</span>`}
      ${state === "open" && deadline && html`<span>${words.ends} <${Moment} at=${deadline} /></span>`}
      ${at && html`<span>${words.ended} <${Moment} at=${at} /> ${words.by(by)}</span>`}
    </p>
    ${mayClose && !sure && html`<button type="button" class="small" onClick=${() => setSure(true)}>${words.close}</button>`}
    ${mayClose && sure && html`<span class="buttons">
      <button type="button" class="small danger" disabled=${busy} onClick=${close}>${words.closeNow}</button>
      <button type="button" class="small" onClick=${() => setSure(false)}>${words.back}</button></span>`}
  </div>`;
}
