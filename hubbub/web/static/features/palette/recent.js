// Recent choices, latest first; stored in this browser.

const MOST = 30;

export class Recent {
  constructor(storage) {
    this.storage = storage;
    this.ids = storage.get("recent", []);
  }

  chose(id) {
    this.ids = [id, ...this.ids.filter((each) => each !== id)].slice(0, MOST);
    this.storage.set("recent", this.ids);
  }

  /** 0 for the latest; Infinity for any that is not recent. */
  rank(id) {
    const at = this.ids.indexOf(id);
    return at === -1 ? Infinity : at;
  }
}
