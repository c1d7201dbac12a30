// A small force-directed layout. It is deterministic: each node starts at a place derived from its key.
// Positions are in a square from about -1 to 1.
const STEPS = 240; // the maximum, after which it counts as settled
const STILL = 0.0008; // settled when the fastest node moves less than this
const REPEL = 0.035;
const SPRING = 0.05;
const CENTRE = 0.02;
const NEAREST = 0.02;
const FASTEST = 0.12;

export class Layout {
  constructor() {
    this.places = new Map(); // key -> {x, y}
    this.edges = [];
    this.degrees = new Map(); // key -> edges
    this.left = 0; // remaining steps
  }

  /** Change nodes or edges; remaining nodes continue from their place. */
  update(keys, edges) {
    const kept = new Map(keys.map((key) => [key, this.places.get(key) ?? startOf(key)]));
    const same = kept.size === this.places.size && keys.every((key) => this.places.has(key));
    const ends = edges.map(({ ends: [a, b] }) => [a, b]);
    if (same && JSON.stringify(ends) === JSON.stringify(this.edges)) return;
    this.places = kept;
    this.edges = ends;
    this.degrees = new Map();
    for (const key of ends.flat()) this.degrees.set(key, (this.degrees.get(key) ?? 0) + 1);
    this.left = STEPS;
  }

  get settled() {
    return this.left === 0;
  }

  settle() {
    while (!this.settled) this.step();
  }

  /** Move every node a little: away from all others, towards its neighbours. */
  step() {
    if (this.settled) return;
    const nodes = [...this.places.values()];
    const ideal = 1.1 / Math.sqrt(Math.max(4, nodes.length));
    const forces = nodes.map(({ x, y }) => ({ x: -x * CENTRE, y: -y * CENTRE }));
    for (let i = 0; i < nodes.length; i++) {
      for (let j = i + 1; j < nodes.length; j++) repel(nodes, forces, i, j, ideal);
    }
    const indexOf = new Map([...this.places.keys()].map((key, at) => [key, at]));
    for (const [a, b] of this.edges) {
      attract(nodes, forces, indexOf.get(a), indexOf.get(b), ideal * this.room(a, b));
    }
    const heat = 0.2 + 0.8 * (this.left / STEPS); // cools down until it stops
    let fastest = 0;
    nodes.forEach((node, at) => {
      const speed = Math.hypot(forces[at].x, forces[at].y) || 1;
      const moved = Math.min(FASTEST, speed) * heat;
      node.x += (forces[at].x / speed) * moved;
      node.y += (forces[at].y / speed) * moved;
      fastest = Math.max(fastest, moved);
    });
    this.left = fastest < STILL ? 0 : this.left - 1;
  }

  /** How much longer an edge must be to make room for the neighbours of its ends. */
  room(a, b) {
    return Math.max(1, Math.sqrt(Math.max(this.degrees.get(a), this.degrees.get(b))) / 1.6);
  }
}

function repel(nodes, forces, i, j, ideal) {
  const dx = nodes[i].x - nodes[j].x;
  const dy = nodes[i].y - nodes[j].y;
  const far = Math.max(NEAREST, Math.hypot(dx, dy));
  const force = (REPEL * ideal * ideal) / (far * far * far);
  push(forces, i, j, dx * force, dy * force);
}

function attract(nodes, forces, i, j, ideal) {
  const dx = nodes[i].x - nodes[j].x;
  const dy = nodes[i].y - nodes[j].y;
  const far = Math.max(NEAREST, Math.hypot(dx, dy));
  const force = (SPRING * (ideal - far)) / far;
  push(forces, i, j, dx * force, dy * force);
}

function push(forces, i, j, x, y) {
  forces[i].x += x;
  forces[i].y += y;
  forces[j].x -= x;
  forces[j].y -= y;
}

/** A point in the unit disc, derived from the key. */
function startOf(key) {
  let hash = 2166136261;
  for (const char of key) hash = Math.imul(hash ^ char.codePointAt(0), 16777619) >>> 0;
  const angle = ((hash & 0xffff) / 0x10000) * 2 * Math.PI;
  const radius = 0.3 + 0.7 * ((hash >>> 16) / 0x10000);
  return { x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
}
