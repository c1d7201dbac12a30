// A file that is dropped beside the conversation must not take the place of the page.

export const carriesFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files") ?? false;

/** Returns how to stop. */
export function guardPage() {
  const guard = (event) => {
    if (!carriesFiles(event) || event.defaultPrevented) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
  };
  window.addEventListener("dragover", guard);
  window.addEventListener("drop", guard);
  return () => {
    window.removeEventListener("dragover", guard);
    window.removeEventListener("drop", guard);
  };
}
