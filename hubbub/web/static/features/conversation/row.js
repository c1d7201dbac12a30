// One place in the log: a message, one that is on its way, one that an agent is writing, or one that
// is not here yet.
import { html, useMemo } from "../../core/ui.js";
import { dayName } from "../../core/time.js";
import { t } from "../../texts.js";
import { Entry } from "./entry.js";
import { Ghost, Working } from "./ghost.js";
import { Message } from "./message.js";
import { Notice } from "./notice.js";

/**
 * @param intro  Of introOf, for all that is here. `enter(tseq)` is told when the pointer comes.
 */
export function Row(props) {
  const { app, thread, log, item, message, entry, ghost, intro, enter } = props;
  const { isNew, isFocused, isMarked, isActive } = props;
  const tseq = item.index + 1;
  // The positions of rows change far more often than what is in them.
  const inside = useMemo(() => {
    if (entry) return html`<${Entry} app=${app} entry=${entry} named=${intro.named} />`;
    if (ghost?.text === null) return html`<${Working} app=${app} sender=${ghost.sender} thread=${thread} />`;
    if (ghost) return html`<${Ghost} app=${app} ghost=${ghost} named=${intro.named} />`;
    if (message?.amends) return null;
    if (!message) return html`<${Skeleton} n=${item.index} />`;
    const View = message.sender_kind === "system" ? Notice : Message;
    return html`<${View} app=${app} thread=${thread} log=${log} message=${message}
      named=${intro.named || isNew} isFocused=${isFocused} isMarked=${isMarked} isActive=${isActive} />`;
  }, [entry, ghost?.text, ghost?.sender, message, intro?.named, isNew, isFocused, isMarked, isActive]);
  const known = message || entry || ghost;
  const isSilent = message?.amends; // it only changes another one
  return html`
    <div class="place" data-index=${item.index} ref=${known ? log.virtual.measureElement : null}
      style=${{ transform: `translateY(${item.start}px)`, height: known ? "auto" : `${item.size}px` }}
      onPointerEnter=${() => enter(tseq)}>
      ${intro?.day && !isSilent && html`<div class="day"><span>${dayName(intro.day)}</span></div>`}
      ${isNew && html`<div class="new-line" role="separator" aria-label=${t.conversation.newHere}>
        <span>${t.conversation.newHere}</span></div>`}
      ${inside}
    </div>
  `;
}

/** The outline of a message, always the same for one place. */
function Skeleton({ n }) {
  return html`<div class="skeleton" aria-hidden="true" data-lines=${n % 3}><i /><b /><b /></div>`;
}
