// The list of completions at the word that is being written.
import { useMemo, useState } from "../../core/ui.js";
import { completed, fitting, wordAt } from "./completion.js";

/**
 * @param place  {text, caret}; `change(text, caret)` puts a completed text in.
 * @returns {{items, active, choose, key}}  `key(event)` tells whether it has taken the stroke.
 */
export function useCompletion({ app, thread, place, change }) {
  const [closed, setClosed] = useState(-1); // start of the word whose list was closed
  const [moved, setMoved] = useState({ word: null, active: 0 });
  const found = place.isAt ? wordAt(place.text, place.caret) : null;
  const word = found && `${found.trigger}${found.word}`;
  const items = useMemo(() => (found ? suggestions(app, thread, found) : []), [word, found?.start]);
  const isOpen = found !== null && items.length > 0 && closed !== found.start;
  const active = moved.word === word ? Math.min(moved.active, items.length - 1) : 0;
  const choose = (item) => {
    const made = completed(place.text, place.caret, found, item.value);
    change(made.text, made.caret);
  };
  const key = (event) => {
    if (!isOpen || event.isComposing) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setMoved({ word, active: (active + step + items.length) % items.length });
    else if (event.key === "Escape") setClosed(found.start);
    else if (event.key === "Tab" || isChoice(event, items[active], found)) choose(items[active]);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return { items: isOpen ? items : [], active, choose, key };
}

/** Enter sends what is written out already, and Control and Enter always. */
function isChoice({ key, ctrlKey, metaKey, shiftKey }, item, { word }) {
  return key === "Enter" && !ctrlKey && !metaKey && !shiftKey && item.value !== word;
}

function suggestions(app, thread, { trigger, word }) {
  const all = [...app.add.completions].filter((source) => source.trigger === trigger);
  return fitting(all.flatMap((source) => source.suggest(word, thread)), word);
}
