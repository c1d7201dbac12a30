// State of a shown thread's log besides its messages: scroll position, unread divider, ranges to
// fetch, and the focused message.
import { batch, effect, signal } from "../../core/ui.js";
import { isAttentive, readBy } from "./reading.js";

const FETCH_AFTER_MS = 80;
const AHEAD = 25; // messages fetched before and after the visible ones
const SEEN_PX = 36; // visible height from which a message counts as seen

export class LogState {
  constructor(app, thread) {
    this.app = app;
    this.thread = thread;
    const read = thread.read.peek();
    this.newFrom = signal(thread.unread.peek() > 0 ? read + 1 : 0); // 0: no divider
    this.focus = signal(0); // position of the focused message
    this.marked = signal(null); // id of the highlighted message after a jump
    this.jumping = null; // id of the message being scrolled to the middle
    this.pinned = null; // index that keeps its place while heights around it change
    this.keptUnread = false; // marked as unread by the reader: scrolling does not move the read mark
    this.wantsFocus = false;
    this.virtual = null; // set by the view
    this.visit = null; // the latest entry of the history that showed it
    this.wanted = null;
    this.timer = 0;
    this.frame = 0;
    this.lastRead = read;
    this.stop = effect(() => this.watchMark(thread.read.value));
  }

  leave() {
    this.stop();
    this.keepPlace();
    this.release();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.app.focused.value = null;
    this.thread.trim();
  }

  /** For when the reader comes back to this entry of the history; it no longer has a size on the page. */
  keepPlace() {
    const { places } = this.app.router;
    const left = this.virtual.getVirtualDistanceFromEnd();
    if (left <= this.virtual.options.scrollEndThreshold) places.delete(this.visit);
    else places.set(this.visit, this.seen()?.from);
  }

  /** If the read mark moves back, here or in another tab, it stays there until the reader leaves. */
  watchMark(read) {
    if (read < this.lastRead) {
      this.keptUnread = true;
      this.newFrom.value = read + 1;
    }
    this.lastRead = read;
  }

  // Fetching --------------------------------------------------------------------------------

  /** Fetch missing messages at and around the visible positions. */
  want(from, to) {
    this.wanted = [from, to];
    if (this.timer) return;
    this.fetch();
    this.timer = setTimeout(() => {
      this.timer = 0;
      if (this.wanted) this.want(...this.wanted);
    }, FETCH_AFTER_MS);
  }

  fetch() {
    const [from, to] = this.wanted;
    this.wanted = null;
    const { app, thread } = this;
    thread.trim(Math.round((from + to) / 2));
    if (!thread.missing(from - AHEAD, to + AHEAD)) return;
    if (!app.state.takesPart(thread.id) && thread.kind === "channel") return; // there are no events for non-members
    app.tried(() => app.load(thread.id, from - AHEAD, to + AHEAD));
  }

  // Reading ---------------------------------------------------------------------------------

  /** First and last visible position; null before the first render. */
  seen() {
    const { range, scrollOffset } = this.virtual;
    if (!range) return null;
    const items = this.virtual.getMeasurements();
    const bottom = scrollOffset + this.virtual.getSize();
    let last = range.endIndex;
    const isBelow = ({ start, size }) => start + Math.min(size, SEEN_PX) > bottom;
    while (last > range.startIndex && isBelow(items[last])) last--;
    return { from: range.startIndex + 1, to: last + 1 };
  }

  read() {
    const seen = this.seen();
    if (!seen) return;
    if (this.virtual.scrollState) {
      // It is still moving to its place, past messages that it will not show.
      this.frame ||= requestAnimationFrame(() => {
        this.frame = 0;
        this.read();
      });
      return;
    }
    const { app, thread } = this;
    const head = thread.head.peek();
    const to = Math.min(seen.to, head);
    if (!thread.at(to)) return; // not loaded yet, so not seen
    const read = thread.read.peek();
    if (!isAttentive()) {
      if (!this.newFrom.peek() && thread.unread.peek() > 0) this.newFrom.value = read + 1;
      return;
    }
    if (this.keptUnread) return;
    const upto = readBy({ from: seen.from, to, read, head });
    if (upto) app.readUpTo(thread.id, upto);
  }

  // Moving ----------------------------------------------------------------------------------

  /** The reader scrolled: stop restoring the previous place. */
  release() {
    this.pinned = this.jumping = null;
  }

  toEnd() {
    this.release();
    this.virtual.scrollToEnd();
  }

  /** Scroll a position near the top, with some context above it. */
  toTop(tseq) {
    this.pinned = tseq - 1;
    this.virtual.scrollToIndex(tseq - 1, { align: "start" });
  }

  /** Scroll to a message in any thread, and highlight it. */
  async jump(id) {
    const { app, thread } = this;
    this.jumping = id;
    await app.tried(async () => {
      const message = await app.message(id);
      if (this.jumping !== id) return; // the reader navigated elsewhere
      if (message.thread_id !== thread.id) {
        app.router.go("thread", [message.thread_id, id], { replace: true });
        return;
      }
      this.marked.value = id;
      this.center(message.tseq);
      await app.load(thread.id, message.tseq - AHEAD, message.tseq + AHEAD);
      if (this.jumping !== id) return;
      this.center(message.tseq);
      this.focusOn(message.tseq);
    });
  }

  center(tseq) {
    this.pinned = tseq - 1;
    this.virtual.scrollToIndex(tseq - 1, { align: "center" });
  }

  // Focus -----------------------------------------------------------------------------------

  /** Focus a message and scroll it into view. */
  focusOn(tseq) {
    const to = Math.max(1, Math.min(tseq, this.thread.head.peek()));
    this.wantsFocus = true;
    this.setFocus(to);
    if (this.pinned !== to - 1) this.virtual.scrollToIndex(to - 1, { align: "auto" });
  }

  /** The message after the focused one; the last visible one if none is focused. */
  step(by) {
    const at = this.focus.peek();
    const seen = this.seen();
    if (at || seen) this.focusOn(this.thread.said(at ? at + by : seen.to, at ? by : -1));
  }

  setFocus(tseq) {
    const message = this.thread.at(tseq);
    batch(() => {
      this.focus.value = tseq;
      this.app.focused.value = message && { thread: this.thread.id, message };
    });
  }

  /** The reader's last message that is loaded. */
  lastMine() {
    return this.thread.last(({ sender_id: sender }) => sender === this.app.state.me.peek());
  }
}
