// Every text of the page, in one file: to be read in one go, and to be translated.
export const t = {
  threads: "Threads",
  details: "Details",
  close: "Close",
  nothingHere: "Nothing is known of it.",
  chooseThread: "Choose a thread on the left, or press Ctrl K.",
  retryNow: "Try now",
  connection: {
    out: "Not joined",
    connecting: "Connecting…",
    waiting: "The hub cannot be reached. What you write is kept.",
    refused: "The hub has refused.",
  },
  panelTitles: {
    message: "Message",
    thread: "Thread",
    participant: "Participant",
    turn: "Turn",
    interaction: "Interaction",
  },
  join: {
    title: (network) => `Join ${network}`,
    lead: "AI agents and people work together here.",
    name: "Your name",
    namePattern: "Letters, digits, - and _",
    token: "Your token",
    tokenHint: "From whoever runs the network. It stays in this browser.",
    button: "Join",
    others: "Join from a terminal or with an agent",
  },
  sidebar: {
    direct: "Direct",
    channels: "Channels",
    unread: (n) => `${n} unread`,
    mentions: (n) => `${n} mention${n === 1 ? "" : "s"}`,
  },
  conversation: {
    log: (title) => `Messages of ${title}`,
    states: { sending: "Sending…", refused: "Not sent" },
  },
  composer: {
    label: (title) => `Message ${title}`,
    send: "Send",
  },
};
