// Images, drawn from the bytes of their files: never an element that could run or load anything.
import { visible } from "../../core/markdown.js";
import { html, useEffect, useRef, useState } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { sizeOf } from "./size.js";
import { words } from "./texts.js";
import { download } from "./transfer.js";

const TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif"]);
const UNASKED = 3_000_000; // size up to which an image is loaded automatically
const SMALL_PX = 640; // of the longer side
const LARGE_PX = 2400;
const KEPT = 60;

export const isPicture = (type) => TYPES.has(type);

const small = new Map(); // file -> promise of a bitmap, latest last

/** A thumbnail of a file, which opens the large image. */
export function Picture({ app, id, name, size, show }) {
  const [wanted, setWanted] = useState(size != null && size <= UNASKED);
  const title = words.show(visible(name));
  if (!wanted) {
    return html`<button type="button" class="picture ask" onClick=${() => setWanted(true)}>
      ${words.load} (${sizeOf(size ?? 0)})</button>`;
  }
  return html`<button type="button" class="picture" aria-label=${title} title=${title}
    onClick=${() => show({ id, name })}><${Drawn} read=${() => smallOf(app, id)} /></button>`;
}

/** The large image over the page. */
export function Large({ app, id, name, close }) {
  return html`<${Dialog} title=${visible(name)} close=${close} className="large-picture">
    <div class="body"><${Drawn} label=${words.picture(visible(name))} read=${() => bitmapOf(app, id, LARGE_PX)} /></div>
  <//>`;
}

function Drawn({ read, label = null }) {
  const canvas = useRef(null);
  const [state, setState] = useState("coming"); // or "there", "failed"
  useEffect(() => {
    let here = true;
    read().then(
      (bitmap) => {
        if (!here) return;
        draw(canvas.current, bitmap);
        setState("there");
      },
      () => here && setState("failed"),
    );
    return () => (here = false);
  }, []);
  return html`<canvas ref=${canvas} width="1" height="1" data-state=${state} hidden=${state === "failed"}
    role=${label ? "img" : null} aria-label=${label} aria-hidden=${label ? null : "true"} />
    ${state === "failed" && html`<span class="quiet small">${words.noPicture}</span>`}`;
}

function draw(canvas, bitmap) {
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
}

function smallOf(app, id) {
  const known = small.get(id);
  small.delete(id);
  const bitmap = known ?? bitmapOf(app, id, SMALL_PX);
  small.set(id, bitmap);
  bitmap.catch(() => small.delete(id)); // retried at the next render
  if (small.size > KEPT) small.delete(small.keys().next().value);
  return bitmap;
}

/** A bitmap whose longer side has at most this many pixels. Rejects if it is not an image. */
async function bitmapOf(app, id, most) {
  const whole = await createImageBitmap(await download(app.client, id));
  const scale = most / Math.max(whole.width, whole.height);
  if (scale >= 1) return whole;
  const at = (length) => Math.max(1, Math.round(length * scale));
  const fitted = await createImageBitmap(whole, {
    resizeWidth: at(whole.width), resizeHeight: at(whole.height), resizeQuality: "high",
  });
  whole.close();
  return fitted;
}
