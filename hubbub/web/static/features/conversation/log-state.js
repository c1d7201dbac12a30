// What a shown thread's log knows besides its messages: where the reader is, what is new since it
// was opened, what is to be fetched, and which message has the focus.
import { batch, effect, signal } from "../../core/ui.js";
import { isAttentive, readBy } from "./reading.js";

const FETCH_AFTER_MS = 80;
const AHEAD = 25; // messages fetched before and after those that are seen
const SEEN_PX = 36; // of a message that are on the screen when it counts as seen

export class LogState {
  constructor(app, thread) {
    this.app = app;
    this.thread = thread;
    const read = thread.read.peek();
    this.newFrom = signal(thread.head.peek() > read ? read + 1 : 0); // 0: no divider
    this.focus = signal(0); // position of the focused message
    this.marked = signal(null); // id of the message that was jumped to
    this.jumping = null; // id of the message that is being brought to the middle
    this.pinned = null; // index that stays where it is while heights around it change
    this.keptUnread = false; // the reader has put the mark back: what is seen does not move it
    this.wantsFocus = false;
    this.virtual = null; // set by the view
    this.wanted = null;
    this.timer = 0;
    this.lastRead = read;
    this.stop = effect(() => this.watchMark(thread.read.value));
  }

  leave() {
    this.stop();
    this.release();
    clearTimeout(this.timer);
    this.app.focused.value = null;
    this.thread.trim();
  }

  /** When the mark goes back, here or in another tab, it stays there until one leaves. */
  watchMark(read) {
    if (read < this.lastRead) {
      this.keptUnread = true;
      this.newFrom.value = read + 1;
    }
    this.lastRead = read;
  }

  // Fetching --------------------------------------------------------------------------------

  /** These positions are on the screen: fetch what of them, and around them, is not here. */
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
    if (!thread.missing(from - AHEAD, to + AHEAD)) return;
    thread.trim(Math.round((from + to) / 2));
    if (!app.state.takesPart(thread.id) && thread.kind === "channel") return; // nobody tells
    app.tried(() => app.load(thread.id, from - AHEAD, to + AHEAD));
  }

  // Reading ---------------------------------------------------------------------------------

  /** First and last position on the screen; null before there are any. */
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
    const { app, thread } = this;
    const head = thread.head.peek();
    const to = Math.min(seen.to, head);
    if (!thread.at(to)) return; // not here yet: nobody has seen it
    const read = thread.read.peek();
    if (!isAttentive()) {
      if (!this.newFrom.peek() && head > read) this.newFrom.value = read + 1;
      return;
    }
    if (this.keptUnread) return;
    const upto = readBy({ from: seen.from, to, read, head });
    if (upto) app.readUpTo(thread.id, upto);
  }

  // Moving ----------------------------------------------------------------------------------

  /** The reader moves by hand: nothing is put back to where it was. */
  release() {
    this.pinned = this.jumping = null;
  }

  toEnd() {
    this.release();
    this.virtual.scrollToEnd();
  }

  /** Put a position near the top, so that what is above can be guessed. */
  toTop(tseq) {
    this.pinned = tseq - 1;
    this.virtual.scrollToIndex(tseq - 1, { align: "start" });
  }

  /** Bring a message to the middle, wherever it stands, and mark it. */
  async jump(id) {
    const { app, thread } = this;
    this.jumping = id;
    await app.tried(async () => {
      const message = await app.message(id);
      if (this.jumping !== id) return; // the reader has gone on
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

  /** Give a message the focus, in view. */
  focusOn(tseq) {
    const to = Math.max(1, Math.min(tseq, this.thread.head.peek()));
    this.wantsFocus = true;
    this.setFocus(to);
    if (this.pinned !== to - 1) this.virtual.scrollToIndex(to - 1, { align: "auto" });
  }

  /** The next message from the focused one; the last that is seen, if none is focused. */
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

  /** The last message of the reader that is here. */
  lastMine() {
    return this.thread.last(({ sender_id: sender }) => sender === this.app.state.me.peek());
  }
}
