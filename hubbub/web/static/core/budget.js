// Schedules work that many parts of the page want done at once, mostly drawing Markdown: a few
// milliseconds per frame, so that the page stays responsive.

const FRAME_MS = 8;

export class Budget {
  constructor({ clock = () => performance.now(), nextFrame = (then) => requestAnimationFrame(then) } = {}) {
    this.clock = clock;
    this.nextFrame = nextFrame;
    this.spent = 0;
    this.waiting = new Set();
    this.counting = false;
  }

  /** Do `work` if this frame has time left; returns whether it was done. */
  now(work) {
    if (this.spent >= FRAME_MS || this.waiting.size) return false;
    this.spend(work);
    return true;
  }

  /** Do `work` in one of the next frames. Returns a function that cancels it. */
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
