// Transfers bytes to and from the hub in parts. Each part is retried until the hub answers, over any
// number of connections.

const AGAIN = 2; // times an upload is restarted when the hub no longer has it
const AT_ONCE = 0x8000; // bytes that one call converts to characters

/**
 * Upload `blob`. `known` is an earlier upload to continue, or null.
 * @param {{began, sent, isOver}} told  began(upload), sent(bytes), isOver() stops it.
 * @returns The file as the hub has it; null if it was stopped. Rejects with a CallError.
 */
export async function upload(client, { name, blob, known }, told) {
  for (let tries = 0, id = known; ; tries++, id = null) {
    try {
      return await uploadOnce(client, { name, blob, id }, told);
    } catch (error) {
      if (error.code !== "not_found" || tries === AGAIN) throw error;
    }
  }
}

async function uploadOnce(client, { name, blob, id }, told) {
  const begun = id
    ? await client.call("upload_state", { upload: id })
    : await client.write("begin_upload", { name, size: blob.size });
  const { upload: its, chunk } = begun;
  told.began(its);
  for (let at = begun.received; at < blob.size; told.sent(at)) {
    if (told.isOver()) return null;
    const part = await blob.slice(at, at + chunk).arrayBuffer();
    at = (await client.write("upload_chunk", { upload: its, offset: at, data: encoded(part) })).received;
  }
  return told.isOver() ? null : client.write("finish_upload", { upload: its });
}

/**
 * Fetch a file. `got(bytes, size)` reports progress, `isOver()` stops it.
 * @param client
 * @param {string} id
 * @param {{got?: (bytes: number, size: number) => void, isOver?: () => boolean}} [options]
 * @returns A Blob without a type; null if it was stopped.
 */
export async function download(client, id, { got = () => {}, isOver = () => false } = {}) {
  const parts = [];
  for (let at = 0; !isOver(); ) {
    const { data, more, size } = await client.call("download_chunk", { id, offset: at });
    parts.push(decoded(data));
    at += parts.at(-1).length;
    got(at, size);
    if (!more) return new Blob(parts);
  }
  return null;
}

/** Save it with the browser: it is never opened in the page. */
export function keep(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // the browser has started reading it by then
}

function encoded(buffer) {
  const bytes = new Uint8Array(buffer);
  let text = "";
  for (let at = 0; at < bytes.length; at += AT_ONCE) {
    text += String.fromCharCode(...bytes.subarray(at, at + AT_ONCE));
  }
  return btoa(text);
}

function decoded(data) {
  return Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
}
