// Work that many parts of the page want done at once (drawing Markdown, mostly), a few milliseconds
// of it per frame, so that the page never stands still.

const FRAME_MS = 8;

export class Budget {
  constructor({ clock = () => performance.now(), nextFrame = (then) => requestAnimationFrame(then) } = {}) {
    this.clock = clock;
    this.nextFrame = nextFrame;
    this.spent = 0;
    this.waiting = new Set();
    this.counting = false;
  }

  /** Do `work` if this frame still has time for it; returns whether it was done. */
  now(work) {
    if (this.spent >= FRAME_MS || this.waiting.size) return false;
    this.spend(work);
    return true;
  }

  /** Do `work` in one of the next frames. Returns how to cancel. */
  later(work) {
    this.waiting.add(work);
    this.count();
    return () => this.waiting.delete(work);
  }

  spend(work) {
    const began = this.clock();
    work();
    this.spent += this.clock() - began;
    this.count();
  }

  count() {
    if (this.counting) return;
    this.counting = true;
    this.nextFrame(() => this.frame());
  }

  frame() {
    this.counting = false;
    this.spent = 0;
    for (const work of this.waiting) {
      if (this.spent >= FRAME_MS) break;
      this.waiting.delete(work);
      this.spend(work);
    }
    if (this.waiting.size) this.count();
  }
}
