// The layout of a sequence diagram in pixels: participants from left to right, time downwards, one
// line per message.
export const ROW = 44;
export const HEAD = 44;
const TOP = 34; // above the first message
const BOTTOM = 24;
const GUTTER = 60; // for times, on the left
const NARROWEST = 120;
const WIDEST = 260;
const BAR = 10; // width of a turn's bar
const STEP = 6; // offset between overlapping bars of one agent
const LETTER = 7; // approximate width of a letter

/**
 * @param story  Of story.js.
 * @param {number} room  Available width in pixels; the layout can be wider.
 * @returns {{width, height, column, heads: {id, x}[], lines, bars}}
 *   lines: {row, message, y, dot, bus, arrows: {from, to, wakes}[], label: {x, most}}, x positions in
 *   pixels. bars: {turn, x, y, height, open}, `open` for a turn that has not ended.
 */
export function layoutOf({ actors, rows, turns }, room) {
  const column = clamp((room - GUTTER) / Math.max(1, actors.length), NARROWEST, WIDEST);
  const xOf = new Map(actors.map((id, at) => [id, GUTTER + (at + 0.5) * column]));
  const width = GUTTER + actors.length * column;
  const height = TOP + rows.length * ROW + BOTTOM;
  return {
    width,
    height,
    column,
    heads: actors.map((id) => ({ id, x: xOf.get(id) })),
    lines: rows.map((row, at) => lineOf(row, at, xOf, width)),
    bars: barsOf(turns, xOf, height),
  };
}

const yOf = (row) => TOP + row * ROW + ROW / 2;

function lineOf({ message, from, bus, to }, row, xOf, width) {
  const dot = xOf.get(from);
  const arrows = to.map(({ id, wakes }) => arrowTo(dot, xOf.get(id), wakes));
  const ends = [dot, ...arrows.map((arrow) => arrow.to)];
  if (bus) ends.push(width - BAR);
  const left = Math.min(...ends);
  const right = Math.max(...ends);
  // At least a column wide, within the picture: labels near its edge have little room.
  const room = Math.max(NARROWEST, right - left - 2 * BAR);
  const label = { x: Math.min(left + BAR, width - room), most: Math.floor(room / LETTER) };
  return { row, message, y: yOf(row), dot, bus: bus ? { from: GUTTER, to: width } : null, arrows, label };
}

/** Arrows start and end beside the bars. */
function arrowTo(from, to, wakes) {
  const side = Math.sign(to - from) * (BAR / 2 + 1);
  return { from: from + side, to: to - side, wakes };
}

function barsOf(turns, xOf, height) {
  const taken = new Map(); // agent -> for each column of bars, where it is free again
  return [...turns]
    .sort((a, b) => a.from - b.from)
    .map((turn) => {
      const ends = taken.get(turn.agent) ?? [];
      taken.set(turn.agent, ends);
      let level = ends.findIndex((end) => end <= turn.from);
      if (level < 0) level = ends.length;
      ends[level] = turn.to ?? Infinity;
      const y = yOf(turn.from);
      const end = turn.to === null ? height - BOTTOM / 2 : yOf(turn.to) + 4;
      return {
        turn,
        x: xOf.get(turn.agent) - BAR / 2 + level * STEP,
        y,
        height: end - y,
        width: BAR,
        open: turn.to === null,
      };
    });
}

const clamp = (n, least, most) => Math.min(most, Math.max(least, n));
