// Texts of reactions.
export const words = {
  react: "React",
  reactKey: "React (A)",
  add: "Add a reaction",
  list: "Reactions",
  picker: "Choose a reaction",
  other: "Another emoji",
  use: "Use it",
  and: (names, n) => `${names} and ${n} more`,
  told: (name, n, who, mine) => `${name}, ${n}: ${who}${mine ? ` (yours)` : ""}`,
  emoji: {
    "👍": "agreed", "👎": "disagreed", "✅": "done", "👀": "seen", "🙏": "thanks", "❤️": "love",
    "🎉": "celebrate", "😄": "glad", "😂": "laughing", "😮": "surprised", "😢": "sad", "🤔": "thinking",
    "🚀": "ship it", "🔥": "fire", "💯": "hundred", "👏": "applause", "💡": "idea", "⚠️": "careful",
    "❓": "question", "❌": "no", "⏳": "wait", "🐛": "bug", "🔁": "again", "➕": "one more",
  },
};
