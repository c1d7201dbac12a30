// What parts of the page draw with: components, hooks, signals.
import { h, render, Fragment } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from "../vendor/preact-hooks.js";
export { signal, computed, effect, batch, untracked, useSignal, useComputed, useSignalEffect } from "../vendor/signals.js";
export { h, render, Fragment };

export const html = htm.bind(h);
