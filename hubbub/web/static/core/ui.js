// The page's UI library: components, hooks, signals.
import { h, render } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export {
  useEffect, useId, useLayoutEffect, useMemo, useRef, useState,
} from "../vendor/preact-hooks.js";
export {
  batch, computed, effect, signal, useComputed, useSignal,
} from "../vendor/signals.js";
export { h, render };

export const html = htm.bind(h);
