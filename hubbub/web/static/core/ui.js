// What parts of the page draw with: components, hooks, signals.
import { h, render, Fragment } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export {
  useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState,
} from "../vendor/preact-hooks.js";
export {
  batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect,
} from "../vendor/signals.js";
export { h, render, Fragment };

export const html = htm.bind(h);
