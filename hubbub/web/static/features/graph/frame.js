// From a layout's places to pixels: the whole of it, with a margin, in the middle of what room there is.
const MARGIN = { x: 70, y: 52 };
const LARGEST = 320; // pixels of a unit: few nodes stay near each other

/** @returns  (key) => {x, y} in pixels. */
export function frameOf(places, { width, height }) {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { x, y } of places.values()) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  const across = scale(right - left, width - 2 * MARGIN.x);
  const down = scale(bottom - top, height - 2 * MARGIN.y);
  return (key) => {
    const { x, y } = places.get(key);
    return {
      x: Math.round(width / 2 + (x - (left + right) / 2) * across),
      y: Math.round(height / 2 + (y - (top + bottom) / 2) * down),
    };
  };
}

/** What of a picture is moved: `[data-node]` elements, and lines with `data-from` and `data-to`. */
export function piecesOf(box) {
  const nodes = [...box.querySelectorAll("[data-node]")];
  const lines = [...box.querySelectorAll("line[data-from]")];
  return {
    // By hand, not by drawing anew: sixty times a second a hundred nodes would be too many for that.
    arrange(at) {
      for (const node of nodes) {
        const { x, y } = at(node.dataset.node);
        node.style.transform = `translate(${x}px, ${y}px)`;
      }
      for (const line of lines) {
        const [from, to] = [at(line.dataset.from), at(line.dataset.to)];
        line.setAttribute("x1", from.x);
        line.setAttribute("y1", from.y);
        line.setAttribute("x2", to.x);
        line.setAttribute("y2", to.y);
      }
    },
  };
}

const scale = (extent, room) => (extent > 0 ? Math.min(LARGEST, Math.max(0, room) / extent) : 0);
