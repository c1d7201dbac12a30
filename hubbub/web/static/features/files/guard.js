// Keeps a file dropped outside the conversation from replacing the page.

export const carriesFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files") ?? false;

/** Returns a function that stops it. */
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
