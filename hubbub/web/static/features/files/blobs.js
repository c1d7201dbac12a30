// The bytes of files that are not uploaded yet, in this browser's database: uploading goes on after
// a reload. Where there is none, or it is full, a reload ends it.

const NAME = "hubbub-files";

export class Blobs {
  constructor(factory = globalThis.indexedDB) {
    this.factory = factory;
    this.opened = null;
  }

  put(key, blob) {
    return this.ask("readwrite", (store) => store.put(blob, key));
  }

  /** Null if it is not there. */
  async get(key) {
    return (await this.ask("readonly", (store) => store.get(key))) ?? null;
  }

  drop(key) {
    return this.ask("readwrite", (store) => store.delete(key));
  }

  /** Resolves to null for whatever goes wrong. */
  async ask(mode, how) {
    try {
      this.opened ??= this.open();
      const store = (await this.opened).transaction(NAME, mode).objectStore(NAME);
      return await result(how(store));
    } catch {
      return null;
    }
  }

  open() {
    const asked = this.factory.open(NAME, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(NAME);
    return result(asked);
  }
}

function result(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
