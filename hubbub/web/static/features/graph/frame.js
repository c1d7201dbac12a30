// Scales a layout to pixels, centred in the available space with a margin.
const MARGIN = { x: 70, y: 52 };
const LARGEST = 320; // maximum pixels per unit, which keeps few nodes close together

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

/** The moving parts of a picture: `[data-node]` elements, and lines with `data-from` and `data-to`. */
export function piecesOf(box) {
  const nodes = [...box.querySelectorAll("[data-node]")];
  const lines = [...box.querySelectorAll("line[data-from]")];
  return {
    // Set directly instead of re-rendering a hundred nodes sixty times a second.
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
