// A document from the hub, whole: long ones come in parts.

/** {document, version, text}: of the latest version, or of the one that is asked for. */
export async function readWhole(client, id, version = null) {
  const first = await client.call("read_document", { id, numbers: false, ...(version && { version }) });
  const parts = [first.text];
  for (let last = first.last; last < first.lines; ) {
    const args = { id, version: first.version, numbers: false, first: last + 1 };
    const part = await client.call("read_document", args);
    parts.push(part.text);
    last = part.last;
  }
  return { document: first.document, version: first.version, text: parts.join("\n") };
}

/** The same, with {author, at, note, base} of its version. */
export async function readWithAuthor(client, id, version = null) {
  const whole = await readWhole(client, id, version);
  const { versions } = await client.call("document_history", { id, before: whole.version + 1, limit: 1 });
  return { ...whole, made: versions[0] };
}
