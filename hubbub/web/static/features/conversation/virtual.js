// @tanstack/virtual-core for Preact.
import { useLayoutEffect, useRef, useState } from "../../core/ui.js";
import {
  Virtualizer, elementScroll, observeElementOffset, observeElementRect,
} from "../../vendor/virtual/index.js";

/** The virtualizer of a list that this component draws; it is drawn again when what is seen changes. */
export function useVirtual(options) {
  const [, redraw] = useState(0);
  const made = useRef(null);
  const whole = {
    observeElementRect, observeElementOffset, scrollToFn: elementScroll, ...options,
    onChange: () => redraw((n) => n + 1),
  };
  made.current ??= new Virtualizer(whole);
  const virtual = made.current;
  virtual.setOptions(whole);
  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());
  return virtual;
}
