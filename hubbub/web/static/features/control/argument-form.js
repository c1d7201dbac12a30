// A form for the arguments of a call, built from the tool's JSON Schema: one field per argument.
import { html, useState } from "../../core/ui.js";
import { later } from "../../texts-later.js";
import { seen } from "./arguments.js";

const words = later.approvals;
const INPUTS = { integer: "number", number: "number", boolean: "checkbox" };
const FORMATS = { date: "date", time: "time", email: "email", uri: "url" };
const LONG = 50; // longer texts get a multi-line field
const MOST_ROWS = 10;

/** `change(value)` gets the complete new arguments. */
export function ArgumentForm({ value, schema, change }) {
  const properties = schema?.properties ?? {};
  const names = [...new Set([...Object.keys(properties), ...Object.keys(value)])];
  const set = (name) => (next) => {
    const { [name]: before, ...others } = value;
    if (next === undefined) change(others);
    else change(Object.hasOwn(value, name) ? { ...value, [name]: next } : { ...others, [name]: next });
  };
  return html`<div class="argument-form">
    ${names.map((name, n) => html`<${Argument} key=${name} name=${name} value=${value[name]} set=${set(name)}
      schema=${resolved(properties[name] ?? {}, schema)} isFirst=${n === 0} />`)}
  </div>`;
}

/** The schema with local references resolved: `#/$defs/Name`. */
function resolved(schema, root) {
  const steps = (schema.$ref ?? "").replace(/^#\/?/, "").split("/").filter(Boolean);
  return schema.$ref ? { ...steps.reduce((found, step) => found?.[step], root), ...schema } : schema;
}

function Argument({ name, value, schema, set, isFirst }) {
  const [View] = useState(() => viewOf(value, schema)); // typing must not replace the field
  return html`<label class=${View === Tick ? "field tick-field" : "field"}>
    <code>${seen(name)}</code>
    <${View} name=${name} value=${value} schema=${schema} set=${set} focus=${isFirst ? "" : null} />
    ${schema.description && html`<small>${seen(schema.description)}</small>`}
  </label>`;
}

/** Values other than a text or number, and invisible characters, are edited as JSON. */
function viewOf(value, { type, enum: choices }) {
  if (choices?.every((each) => typeof each === "string")) return Choice;
  if (type === "boolean" && value !== null) return Tick;
  if (INPUTS[type] && (value === undefined || typeof value === "number")) return Line;
  if ((type === "string" || (!type && typeof value === "string")) && seen(value ?? "") === (value ?? "")) return Text;
  return Json;
}

function Choice({ name, value, schema, set, focus }) {
  return html`<select name=${name} data-focus=${focus} onChange=${(event) => set(event.target.value)}>
    ${[...new Set([value ?? "", ...schema.enum])].map((each) => html`<option key=${each} value=${each}
      selected=${each === value}>${seen(each)}</option>`)}
  </select>`;
}

function Tick({ name, value, set, focus }) {
  return html`<input type="checkbox" name=${name} data-focus=${focus} checked=${value}
    onChange=${(event) => set(event.target.checked)} />`;
}

function Line({ name, value, schema, set, focus }) {
  const [text, setText] = useState(`${value ?? ""}`); // as typed: 1. and 1.0 are the same number
  const input = ({ target }) => {
    setText(target.value);
    set(target.value === "" ? undefined : Number(target.value));
  };
  return html`<input type="number" name=${name} data-focus=${focus} step=${schema.type === "integer" ? 1 : "any"}
    min=${schema.minimum} max=${schema.maximum} value=${text} onInput=${input} />`;
}

function Text({ name, value = "", schema, set, focus }) {
  const [wasThere] = useState(value !== "");
  const input = ({ target }) => set(target.value === "" && !wasThere ? undefined : target.value);
  const rows = Math.min(MOST_ROWS, value.split("\n").length + Math.floor(value.length / LONG));
  const type = FORMATS[schema.format];
  if (type) return html`<input type=${type} name=${name} data-focus=${focus} value=${value} onInput=${input} />`;
  return html`<textarea name=${name} data-focus=${focus} rows=${rows} dir="auto" value=${value} onInput=${input} />`;
}

function Json({ name, value, set, focus }) {
  const [text, setText] = useState(value === undefined ? "" : seen(JSON.stringify(value, null, 2)));
  const [isWrong, setWrong] = useState(false);
  const input = ({ target }) => {
    setText(target.value);
    try {
      set(target.value.trim() ? JSON.parse(target.value) : undefined);
      setWrong(false);
    } catch {
      setWrong(true);
    }
  };
  const validity = (field) => field?.setCustomValidity(isWrong ? words.notJson : ""); // keeps the form from being sent
  return html`<textarea class="mono" name=${name} data-focus=${focus} rows=${Math.min(MOST_ROWS, text.split("\n").length)}
    ref=${validity} spellcheck="false" aria-invalid=${isWrong ? "true" : null} value=${text} onInput=${input} />
    ${isWrong && html`<small class="problem" role="alert">${words.notJson}</small>`}`;
}
