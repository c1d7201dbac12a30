// Whether arguments fit a tool's JSON Schema: the part of it that tools use. The hub and the agent
// look again; this is for people, who should hear of a slip before they send it. Pure.
import { later } from "../../texts-later.js";

const words = later.schema;
const DEEPEST = 24;

/** {value, problems}: what the text says, and what is wrong with it as the arguments of a tool. */
export function readArguments(text, schema) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { value: null, problems: [words.notJson(error.message)] };
  }
  if (kindOf(value) !== "object") return { value: null, problems: [words.notObject] };
  return { value, problems: schema ? problemsOf(value, schema) : [] };
}

/** What is wrong with a value, in words, each with where it is: `files[2].name: must be a string`. */
export function problemsOf(value, schema) {
  return check(value, schema, { root: schema, path: "", depth: 0 });
}

function check(value, schema, at) {
  if (schema === true || schema == null || at.depth > DEEPEST) return [];
  if (schema === false) return [words.at(at.path, words.none)];
  const whole = resolved(schema, at.root);
  const kind = kindOf(value);
  const types = whole.type === undefined ? null : [whole.type].flat();
  if (types && !types.some((type) => isOf(value, kind, type))) {
    return [words.at(at.path, words.type(types))];
  }
  return [
    ...ofValues(value, whole, at),
    ...(kind === "number" ? ofNumber(value, whole, at) : []),
    ...(kind === "string" ? ofString(value, whole, at) : []),
    ...(kind === "array" ? ofArray(value, whole, at) : []),
    ...(kind === "object" ? ofObject(value, whole, at) : []),
    ...ofChoices(value, whole, at),
  ];
}

function kindOf(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isOf(value, kind, type) {
  return type === "integer" ? Number.isInteger(value) : kind === type;
}

/** The schema with what it refers to. */
export function resolved(schema, root) {
  return schema?.$ref ? { ...resolve(schema.$ref, root), ...schema } : schema;
}

/** `#/$defs/Name`, and nothing outside of the schema. */
function resolve(ref, root) {
  const steps = ref.replace(/^#\/?/, "").split("/").filter(Boolean);
  const name = (step) => step.replaceAll("~1", "/").replaceAll("~0", "~");
  return steps.reduce((found, step) => found?.[name(step)], root) ?? {};
}

function ofValues(value, schema, { path }) {
  const text = JSON.stringify(value);
  const json = (each) => JSON.stringify(each);
  const differs = (each) => json(each) !== text;
  return failing(path, [
    [schema.enum?.every(differs), () => words.enum(schema.enum.map(json))],
    ["const" in schema && differs(schema.const), () => words.constant(json(schema.const))],
  ]);
}

const failing = (path, rules) => rules.filter(([wrong]) => wrong).map(([, what]) => words.at(path, what()));

function ofNumber(value, { minimum, maximum, exclusiveMinimum, exclusiveMaximum }, { path }) {
  return failing(path, [
    [value < minimum, () => words.least(minimum)],
    [value > maximum, () => words.most(maximum)],
    [value <= exclusiveMinimum, () => words.above(exclusiveMinimum)],
    [value >= exclusiveMaximum, () => words.below(exclusiveMaximum)],
  ]);
}

function ofString(value, { minLength, maxLength, pattern }, { path }) {
  const length = [...value].length;
  return failing(path, [
    [length < minLength, () => words.short(minLength)],
    [length > maxLength, () => words.long(maxLength)],
    [pattern !== undefined && !matches(value, pattern), () => words.pattern(pattern)],
  ]);
}

/** What this browser cannot read as a pattern is left to the tool. */
function matches(value, pattern) {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}

function ofArray(value, { items, minItems, maxItems }, at) {
  const inside = value.flatMap((each, n) => check(each, items, below(at, `${at.path}[${n}]`)));
  return [
    ...failing(at.path, [
      [value.length < minItems, () => words.short(minItems)],
      [value.length > maxItems, () => words.long(maxItems)],
    ]),
    ...inside,
  ];
}

function ofObject(value, { properties = {}, required = [], additionalProperties }, at) {
  const missing = required.filter((name) => !Object.hasOwn(value, name)).map(words.missing);
  const found = [];
  for (const [name, each] of Object.entries(value)) {
    const path = at.path ? `${at.path}.${name}` : name;
    if (Object.hasOwn(properties, name)) found.push(...check(each, properties[name], below(at, path)));
    else if (additionalProperties === false) found.push(words.at(at.path, words.unknown(name)));
    else found.push(...check(each, additionalProperties, below(at, path)));
  }
  return [...missing.map((what) => words.at(at.path, what)), ...found];
}

function ofChoices(value, { anyOf, oneOf, allOf = [] }, at) {
  const all = allOf.flatMap((each) => check(value, each, below(at, at.path)));
  const choices = anyOf ?? oneOf;
  if (!choices) return all;
  const tried = choices.map((each) => check(value, each, below(at, at.path)));
  if (tried.some((problems) => !problems.length)) return all;
  // Where one of the choices is of the right kind, what is wrong inside says more.
  const deep = tried.find((problems) => problems.every((each) => each.startsWith(`${at.path}.`)));
  return [...all, ...(deep ?? [words.at(at.path, words.none)])];
}

const below = (at, path) => ({ ...at, path, depth: at.depth + 1 });
