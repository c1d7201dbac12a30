// Desktop notifications for mentions and direct messages: once across all tabs, and only while the
// reader is not looking at the page.
import { signal } from "../../core/ui.js";
import { firstWords } from "../../core/messages.js";
import { t } from "../../texts.js";

const VISIBLE_FIRST_MS = 1000; // hidden tabs give a visible one this long to claim the message
const CLAIM_MS = 60_000; // how long a claim lasts: longer than all tabs need to get the message

export class Notifier {
  constructor(app, { Notification = window.Notification, locks = navigator.locks, page = document } = {}) {
    this.app = app;
    this.Notification = Notification;
    this.locks = locks;
    this.page = page;
    this.wanted = app.storage.remembered("notify", true);
    this.permission = signal(Notification?.permission ?? "unsupported");
  }

  /** Ask for permission; browsers require a click. */
  async ask() {
    this.permission.value = await this.Notification.requestPermission();
    this.wanted.value = true;
  }

  async arrived(message) {
    if (!message || !this.concerns(message)) return;
    const seen = !this.page.hidden; // when it arrived, even if the reader leaves right after
    if (!seen) await new Promise((resolve) => setTimeout(resolve, VISIBLE_FIRST_MS));
    if (!(await this.claim(message.id)) || seen || !this.page.hidden) return;
    if (this.app.state.thread(message.thread_id).read.peek() < message.tseq) this.show(message);
  }

  concerns(message) {
    const me = this.app.state.me.peek();
    if (message.sender_id === me || !this.wanted.peek() || this.permission.peek() !== "granted") return false;
    if (message.mentions.includes(me)) return true;
    const choice = this.app.state.choiceIn(message.thread_id);
    return choice === "followed" || (message.type === "direct" && choice !== "muted");
  }

  /** Whether this tab shows the notification. A visible tab claims it too, but shows none. */
  claim(id) {
    if (!this.locks) return Promise.resolve(true);
    return new Promise((resolve) => {
      this.locks.request(`${this.app.storage.prefix}notify:${id}`, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock && new Promise((release) => setTimeout(release, CLAIM_MS));
      });
    });
  }

  show(message) {
    const where = this.app.state.titleOf(message.thread_id);
    const { sender_id: sender } = message;
    const title = message.type === "direct" ? sender : t.notifications.from(sender, where);
    const shown = new this.Notification(title, {
      body: firstWords(message, 160), tag: message.id, icon: document.querySelector("link[rel=icon]").getAttribute("href"),
    });
    shown.onclick = () => {
      window.focus();
      this.app.show(message.thread_id, message.id);
      shown.close();
    };
  }
}
