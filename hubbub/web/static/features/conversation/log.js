// The messages of a thread, virtualized: of thousands only the visible ones are rendered.
import { firstWords } from "../../core/messages.js";
import { dayName } from "../../core/time.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";
import {
  defaultRangeExtractor, elementScroll, observeElementOffset, observeElementRect, Virtualizer,
} from "../../vendor/virtual/index.js";
import { liveDraftsOf } from "./live-draft.js";
import { introOf, isNamed } from "./grouping.js";
import { LogState } from "./log-state.js";
import { Row } from "./row.js";

const AT_END_PX = 32;
const DAY_PX = 24;
const ESTIMATE_PX = 64; // later corrections of the estimate shift what is below

/** @param shown  Where the log registers itself for the feature's commands. */
export function Log({ app, thread, title, at, shown }) {
  const scroller = useRef(null);
  const log = useMemo(() => new LogState(app, thread), []);
  const [over, setOver] = useState(0);
  thread.changed.value;
  const head = thread.head.value;
  const pending = thread.pending.value;
  const liveDrafts = liveDraftsOf(app.state, thread.id);
  const focus = log.focus.value;
  const me = app.state.me.value;
  const again = app.router.again.value;
  const arrived = useRef(false);
  const virtual = (log.virtual = useVirtual({
    count: head + pending.length + liveDrafts.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (thread.at(index + 1)?.amends ? 0 : ESTIMATE_PX),
    overscan: 5,
    paddingStart: 16,
    paddingEnd: 12,
    scrollPaddingStart: 64,
    scrollPaddingEnd: 12,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: AT_END_PX,
    rangeExtractor: (range) => withFocus(defaultRangeExtractor(range), focus - 1, range.count),
  }));
  virtual.shouldAdjustScrollPositionOnItemSizeChange = (item) => isAbove(item, log, virtual);

  useLayoutEffect(() => {
    shown.log = log;
    const place = app.router.places.get(app.router.visit);
    if (place <= head) log.toTop(place);
    else if (at) log.jump(at);
    else if (log.newFrom.peek()) log.toTop(log.newFrom.peek());
    else log.toEnd();
    return () => {
      shown.log = null;
      log.leave();
    };
  }, []);
  useEffect(() => {
    if (at && arrived.current) log.jump(at);
    arrived.current = true;
  }, [at, again]);
  useOwnWords(log, pending);
  useAttention(log);
  useEnd(log, scroller);
  useLayoutEffect(() => void (log.visit = app.router.visit));
  useLayoutEffect(() => giveFocus(log, scroller.current));
  useEffect(() => {
    const seen = log.seen();
    if (seen) log.want(seen.from, seen.to);
    log.read();
  });

  const items = virtual.getVirtualItems();
  const newAt = thread.said(log.newFrom.value, 1);
  return html`
    <div class="log-frame">
      <${Day} thread=${thread} virtual=${virtual} />
      <div class="log" role="log" aria-live="off" aria-label=${t.conversation.log(title)} ref=${scroller}
        tabindex=${items.some((item) => item.index === focus - 1) ? -1 : 0}
        onKeyDown=${(event) => keyed(event, log, app)} onWheel=${() => log.release()}
        onTouchMove=${() => log.release()} onPointerLeave=${() => setOver(0)}>
        <div class="rows" style=${{ height: `${virtual.getTotalSize()}px` }}>
          ${items.map((item) => {
            const message = thread.at(item.index + 1);
            const entry = pending[item.index - head] ?? null;
            const ghost = liveDrafts[item.index - head - pending.length] ?? null;
            const before = thread.at(thread.said(item.index, -1));
            return html`<${Row} key=${entry?.cid ?? (message ? item.index : `-${item.index}`)}
              app=${app} thread=${thread} log=${log} item=${item} message=${message} entry=${entry}
              ghost=${ghost} intro=${introTo({ message, entry, ghost, before, index: item.index, head, me })}
              isNew=${newAt === item.index + 1} isFocused=${focus === item.index + 1}
              isMarked=${message !== null && log.marked.value === message.id}
              isActive=${(over || focus) === item.index + 1} enter=${setOver} />`;
          })}
        </div>
      </div>
      <${Below} log=${log} thread=${thread} virtual=${virtual} />
      <${NewMessages} app=${app} thread=${thread} />
    </div>
  `;
}

function introTo({ message, entry, ghost, before, index, head, me }) {
  if (message) return introOf(before, message, index === 0);
  if (ghost) return { day: null, named: ghost.text === null || isNamed(before, ghost, ghost.sender) };
  return entry && { day: null, named: index === head && isNamed(before, entry, entry.args.on_behalf_of ?? me) };
}

/** The day of the topmost message while scrolling, unless its separator is visible. */
function Day({ thread, virtual }) {
  const index = virtual.range?.startIndex;
  const first = index === undefined ? null : thread.at(index + 1);
  if (!first || !index) return null;
  const begins = introOf(thread.at(thread.said(index, -1)), first, false).day !== null;
  if (begins && virtual.getMeasurements()[index].start + DAY_PX > virtual.scrollOffset) return null;
  return html`<div class=${virtual.isScrolling ? "day floating" : "day floating resting"} aria-hidden="true">
    <span>${dayName(first.sent_at)}</span></div>`;
}

/** A button to the end, with the number of new messages. */
function Below({ log, thread, virtual }) {
  const fresh = thread.saidAfter(Math.max(thread.read.value, log.seen()?.to ?? thread.head.value));
  const far = virtual.getDistanceFromEnd() > AT_END_PX * 2;
  if (!virtual.range || !far) return null;
  return html`<button type="button" class=${fresh > 0 ? "to-end primary" : "to-end"}
    aria-label=${fresh > 0 ? null : t.conversation.toEnd} title=${t.conversation.toEnd}
    onClick=${() => log.toEnd()}>
    ${fresh > 0 && t.conversation.fresh(fresh)}<${Icon} name="down" size=${16} />
  </button>`;
}

/** Scroll to the reader's own new message from anywhere. */
function useOwnWords(log, pending) {
  const last = useRef(pending.at(-1)?.cid);
  const cid = pending.at(-1)?.cid;
  useLayoutEffect(() => {
    if (cid && cid !== last.current) {
      log.keptUnread = false;
      log.toEnd();
    }
    last.current = cid ?? last.current;
  }, [cid]);
}

/** A reader at the end stays there when the conversation gets smaller: the composer grows, a keyboard opens. */
function useEnd(log, scroller) {
  useLayoutEffect(() => {
    const element = scroller.current;
    let height = null;
    const resized = new ResizeObserver(() => {
      const { scrollHeight, scrollTop, clientHeight } = element;
      const left = scrollHeight - scrollTop - Math.max(height, clientHeight);
      if (height !== null && left <= AT_END_PX) log.toEnd();
      height = clientHeight;
    });
    resized.observe(element);
    return () => resized.disconnect();
  }, []);
}

/** Also mark messages as read when the reader returns to the page. */
function useAttention(log) {
  useEffect(() => {
    const back = () => log.read();
    window.addEventListener("focus", back);
    document.addEventListener("visibilitychange", back);
    return () => {
      window.removeEventListener("focus", back);
      document.removeEventListener("visibilitychange", back);
    };
  }, []);
}

function giveFocus(log, element) {
  if (!log.wantsFocus) return;
  const target = element.querySelector(`[aria-posinset="${log.focus.peek()}"]`);
  if (!target) return;
  log.wantsFocus = false;
  if (document.activeElement?.["value"]) return; // keep the focus in a field with text
  target.focus({ preventScroll: true });
  if (!log.app.focused.peek()) log.setFocus(log.focus.peek());
}

const STEPS = { ArrowDown: 1, ArrowUp: -1 };

function keyed(event, log, app) {
  const isOnMessage = event.target.matches("[data-message]");
  if (!isOnMessage && !event.target.matches("[role=log]")) return;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const message = isOnMessage && app.focused.peek()?.message;
  if (STEPS[event.key] && isOnMessage) log.step(STEPS[event.key]);
  else if (event.key === "Home") log.focusOn(1);
  else if (event.key === "Enter" && message) app.open("message", message.id);
  else {
    if (/^(Page|Arrow)/.test(event.key)) log.release();
    return;
  }
  event.preventDefault();
}

/** Whether to adjust the scroll position when an item changes its height. */
function isAbove(item, log, virtual) {
  if (log.pinned !== null) return item.index < log.pinned;
  const isNew = !virtual.itemSizeCache.has(item.key);
  return (isNew ? item.start : item.end) <= virtual.scrollOffset;
}

function withFocus(indexes, index, count) {
  if (index < 0 || index >= count || indexes.includes(index)) return indexes;
  return [...indexes, index].sort((a, b) => a - b);
}

// Announces incoming messages to screen readers. The log itself is not a live region, since its
// elements come and go while scrolling.

function NewMessages({ app, thread }) {
  const message = app.state.arrived.value;
  const here = message && message.thread_id === thread.id && message.sender_id !== app.state.me.value;
  return html`<div class="hidden-text" role="status">
    ${here && t.conversation.says(app.state.nameOf(message.sender_id), firstWords(message, 160))}
  </div>`;
}

// @tanstack/virtual-core for Preact.

/** The virtualizer of a list rendered by this component, re-rendered when the visible range changes. */
function useVirtual(options) {
  const [, redraw] = useState(0);
  const made = useRef(null);
  const whole = {
    observeElementRect, observeElementOffset, scrollToFn, ...options,
    onChange: () => redraw((n) => n + 1),
  };
  made.current ??= new Virtualizer(whole);
  const virtual = made.current;
  virtual.setOptions(whole);
  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());
  return virtual;
}

function scrollToFn(offset, options, virtual) {
  elementScroll(offset, options, virtual);
  // A list that fits does not move, so no event shows the virtualizer, which would try for seconds, that it did not.
  if (virtual.getTotalSize() <= virtual.getSize()) virtual.pendingWrite = null;
}
