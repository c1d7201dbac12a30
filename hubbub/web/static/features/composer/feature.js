// Writing messages.
export default function composer(app) {
  app.add.commands.add({
    id: "compose", title: "Write a message", keys: "n",
    run: () => document.querySelector("textarea[name=text]")?.focus(),
  });
}
