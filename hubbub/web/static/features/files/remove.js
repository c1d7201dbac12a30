// A dialog that asks before a file is deleted.
import { visible } from "../../core/markdown.js";
import { html } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { words } from "./texts.js";

export function Remove({ app, file, close }) {
  const remove = async () => {
    await app.client.write("delete_file", { id: file.id });
    return () => app.say(words.removed);
  };
  return html`<${FormDialog} title=${words.removeAsk(visible(file.name))} label=${words.remove} danger
    submit=${remove} close=${close}><p>${words.removeText}</p><//>`;
}
