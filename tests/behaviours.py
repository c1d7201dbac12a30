"""What Hubbub promises: each behaviour with an id, a sentence, and the page it comes from.

A test says which behaviours it proves: `@pytest.mark.behaviour("P-17")`. `test_behaviours.py` fails
for a behaviour without a test and for a test that names none of these. The pages are those of the
design; `issue` is the first capability as it was asked for.

    P protocol   W wakes    B bounds        D doors      S store     C client
    A agents     T turns    M mods          L launch     R reliability    U using it
    K tools    Q prompts    H people in charge
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BEHAVIOURS", "Behaviour"]


class Behaviour(NamedTuple):
    id: str
    sentence: str
    source: str


def _of(source: str, sentences: dict[str, str]) -> list[Behaviour]:
    return [Behaviour(id, sentence, source) for id, sentence in sentences.items()]


PROTOCOL = {
    "P-1": "hello is the first frame on every socket: versions, network, epoch, limits.",
    "P-2": "ready tells threads, participants, channels and where the stream starts.",
    "P-3": "ready lists the operations with descriptions and JSON Schemas.",
    "P-4": "Joining and resuming are one path: the stream goes on after the cursor.",
    "P-5": "A wrong epoch or a cursor beyond the head is a fresh start that loses nothing.",
    "P-6": "The durable cursor of each participant lives in the hub.",
    "P-7": "An unknown version closes with 4502.",
    "P-8": "Before identify nothing else is answered, and identify is welcome once.",
    "P-9": "Unknown fields of a frame are ignored, unknown arguments are an error that names them.",
    "P-10": "Thread ids are canonical on the wire; replies hang under them, to five levels.",
    "P-11": "Operations accept canonical and relative ids; a group has at most eight members.",
    "P-12": "A direct message reaches its recipients only.",
    "P-13": "A channel message reaches the members, a broadcast everyone.",
    "P-14": "Never the sender, but its other sockets, get the event.",
    "P-15": "Sending to nobody is an error; for the absent it is stored, and the result says so.",
    "P-16": "Mentions are ids by one resolver, outside code; what resolves to nobody is named.",
    "P-17": "At most so many unacknowledged events fly; the rest is read from the log later.",
    "P-18": "Every recipient gets its events in log order, `prev` proving that none is missing.",
    "P-19": "The snapshot of ready with the events after it is the state of a fresh ready.",
    "P-20": "The range of a close code says whether to come back.",
    "P-21": "An agent has one socket: the newcomer wins, the old one is closed with 4503.",
    "P-22": "The same sender and cid writes once; with another body it is a conflict.",
    "P-23": "Operations are declared once; models read their descriptions and schemas.",
    "P-24": "Threads and messages can be listed and read back, page by page.",
    "P-25": "Everybody hears who comes and goes.",
    "P-26": "Signals are ephemeral, and reach the readers of their thread only.",
    "P-27": "What the hub stamps cannot be said by a client.",
    "P-28": "A cause that never reached the sender is refused.",
    "P-29": "An owner may observe the whole log and is nobody's recipient for it.",
    "P-30": "A draining hub finishes what it took and sends everybody away to come back.",
    "P-31": "The reference pages are generated from the models and tested for being current.",
    "P-32": "How far a person has read is kept, durable, and told to its other connections.",
    "P-33": "Who joins a network or a channel has read what was said before.",
    "P-34": "Mentions are listed, newest first, and so are notices that concern the asker.",
    "P-35": "Receipts tell with whom a message arrived, who has read it, whom it woke and why.",
    "P-36": "An interaction is followed through the log, as far as the asker may read it.",
    "P-37": "People hear what has arrived and who is at work, also those who join later.",
    "P-38": "A client may start at the head of the log instead of the hub's cursor.",
    "P-39": "Owners may look into what agents say among themselves, and into nothing else.",
    "P-40": "People hear which channels there are and who is in them.",
}

BOUNDS = {
    "B-1": "A frame has a limit; beyond it the frame is refused, far beyond it not even read.",
    "B-2": "A text has a limit in bytes of UTF-8.",
    "B-3": "A participant may ask so much a second, with a burst, and is told how long to wait.",
    "B-4": "A network has a limited number of channels.",
    "B-6": "Sockets that never identify are closed.",
    "B-7": "A peer that answers no ping is closed with 4003.",
    "B-8": "Bad input of any kind is one error that says what is wrong, and the hub lives on.",
    "B-9": "A peer that accepts no bytes is closed with 4002 and loses nothing.",
    "B-10": "A hub stops, whatever is on its way at that moment.",
}

DOORS = {
    "D-1": "Tokens are stored as SHA-256, compared in constant time, and prove one participant.",
    "D-2": "Tokens are added and revoked while the hub runs; revoking closes with 4504.",
    "D-3": "Reserved names belong to nobody.",
    "D-4": "Only owners administer.",
    "D-5": "An open network lets everybody in, but a launched agent keeps its name.",
    "D-6": "An open network listens on loopback only.",
    "D-7": "Beside WebSocket the port answers health, metrics and a page, to no foreign site.",
}

WAKES = {
    "W-1": "Nobody but agents is ever woken, and no agent by its own or the hub's messages.",
    "W-2": "A direct message wakes its agents; the reply is required if a person sent it.",
    "W-3": "In a channel those mentioned wake; in a thread, if nobody is, who spoke last there.",
    "W-4": "A broadcast of a person wakes every agent, of an agent those it mentions.",
    "W-5": "An agent's reply wakes its addressee only if it addresses it explicitly.",
    "W-7": "Wakes are durable: an agent that was down is woken once when it returns.",
    "W-8": "What arrives for a thread during its turn becomes one next turn; people go first.",
    "W-9": "A required reply that stays out is told once to the person who waits.",
    "W-10": "A silent finish is asked about once where a reply is required, then accepted.",
    "W-11": "Messages inherit the interaction of their cause, one hop on.",
    "W-12": "At the hop limit a message arrives, wakes nobody, and causes nothing more.",
    "W-13": "Every decision is stored and can be explained.",
}

STORE = {
    "S-1": "At least once to every recipient, nothing lost and nothing twice after dedup.",
    "S-2": "ok means durable: results and pushes come after the commit.",
    "S-3": "Cursors, turns, wakes and memberships survive a restart.",
    "S-4": "Positions are dense: seq in the log, tseq in each thread.",
    "S-5": "A refused commit is a temporary error, burns no number and is over with the next.",
    "S-6": "What has queued goes into one transaction.",
    "S-7": "Every store passes the contract suite.",
    "S-8": "A database that is newer, damaged or not ours is refused in a sentence.",
    "S-9": "One hub per database.",
    "S-10": "Migrations are numbered and leave the version before them when they fail.",
    "S-11": "Reads go by index, however long the log.",
    "S-12": "What was refused leaves no trace that hurts after a restart.",
}

CLIENT = {
    "C-1": "Calls survive lost connections, with the same cid.",
    "C-2": "An event is handed out once and never behind a gap.",
    "C-3": "A lost connection is taken up again with growing, jittered delays, unless forbidden.",
    "C-4": "Programs of the same user find a running network and its tokens.",
}

AGENTS = {
    "A-1": "The prompt is, element for element, the structure of the contract.",
    "A-2": "History shows the last messages, never the future nor the incoming one.",
    "A-3": "Whatever participants write, parsing the prompt gives back exactly what went in.",
    "A-4": "In every step an agent calls a tool or finishes; text alone is corrected once.",
    "A-5": "Wrong calls go back to the model as their result.",
    "A-6": "A turn has limits: steps, tokens, time, repetition.",
    "A-7": "Model errors are retried where that helps, and end the turn where not.",
    "A-8": "A tool is a typed function; its schema comes from signature and docstring.",
    "A-9": "Parallel calls run side by side, writes keep their order, results that of the calls.",
    "A-10": "Python agents have handlers for every way to be addressed.",
    "A-11": "Threads go on in parallel, each with one turn at a time.",
    "A-12": "A template of one's own has the documented variables and is escaped.",
    "A-13": "The scripted model server speaks the real API and misbehaves on demand.",
    "A-14": "Senders that an agent ignores start nothing.",
    "A-15": "In every dialect the same conversation leads to the same steps.",
    "A-16": "No malformed answer crashes a turn, nor runs a call that is not valid.",
    "A-17": "An endpoint that does not know tools is asked in words, from then on and visibly.",
    "A-18": "A step waits for all its calls, any, or most; the cancelled ones say so.",
    "A-19": "Asking, declining and showing a plan are ways out that are there unless disabled.",
    "A-20": "What a model marks of its steps is left out of what it is shown, never half a pair.",
    "A-21": "A question fits its window, keeps what must stay, and tells what was left out.",
    "A-22": "Tokens are counted exactly for OpenAI's encodings, without a network; else estimated.",
    "A-23": "Earlier steps go by importance, by age, or into the model's own words.",
}

PROMPTS = {
    "Q-1": "A plain instruction gives the system prompt that it always gave, byte for byte.",
    "Q-2": "Components stand by priority, equal ones as registered; what is empty vanishes.",
    "Q-3": "YAML removes, adds and replaces components; unknown names are told with the nearest.",
    "Q-4": "A versioned prompt names the variable that it lacks; its fingerprint is recorded.",
    "Q-5": "A version is pinned or the latest, rolled out to a share of threads, and rolled back.",
    "Q-6": "What a model thinks in its scratchpad is recorded and sent to nobody, wherever it is.",
    "Q-7": "Examples are told in the words of the dialect, and the reminder is the very last.",
    "Q-8": "The linter of prompts tells place, rule and remedy, and leaves alone what is right.",
    "Q-9": "Prompts are listed, shown with the config's variables, and compared.",
    "Q-10": "Cases of prompts and agents are run again and again, with a pass rate and its bounds.",
    "Q-11": "A rehearsal reaches nobody: calls are checked, and have results without being run.",
}

TURNS = {
    "T-1": "Every turn is recorded: prompt, steps, calls and results, tokens, outcome.",
    "T-2": "A turn taken up again replays what was done and sends nothing twice.",
    "T-3": "Turns of others are closed to agents and open to owners.",
    "T-4": "Turns, wakes and tokens are counted.",
}

MODS = {
    "M-1": "Mods judge each message with Pass, Replace or Reject; sender and thread stay.",
    "M-2": "The mod `moderation` knows length and words.",
    "M-3": "A mod that breaks breaks one call only.",
}

LAUNCH = {
    "L-1": "One YAML file launches a network; unknown keys are told with place and nearest name.",
    "L-2": "The environment is read with ${NAME} and ${NAME:-default}; includes merge maps.",
    "L-3": "Mistakes are one sentence with place and remedy, exit code 2, nothing half-started.",
    "L-4": "`up` supervises processes: backoff, a circuit after quick deaths, named output.",
    "L-5": "Stopping is clean and leaves no process behind.",
    "L-6": "Each process gets its own tokens, through its environment.",
    "L-7": "The shipped networks run for real.",
    "L-8": "The schema of the YAML is printed for editors.",
    "L-9": "`init` writes a network that passes `check`; `doctor` looks at the machine.",
    "L-10": "Without a key one sentence says what is missing and what works without.",
}

USING = {
    "U-1": "`chat` has history, threads, completion, colours and unread counts.",
    "U-2": "What others write cannot steer the terminal.",
    "U-3": "Commands have a form for programs.",
    "U-4": "The examples of the README and the tutorial work.",
    "U-5": "`why`, `turns` and `turn` show what agents did and why.",
    "U-6": "What an agent is about to say is shown, is no message, and goes when it is one or not.",
    "U-7": "The record of a turn is shown with what the runtime did, and nothing that it did not.",
    "U-8": "A turn can be tried with another prompt or model: asked once, nothing run or kept.",
}

RELIABILITY = {
    "R-1": "kill -9 of the hub loses nothing that was acknowledged and doubles nothing.",
    "R-2": "An agent killed in the middle of a turn sends nothing twice.",
    "R-3": "Thousands of malformed frames disturb nobody.",
    "R-4": "Hundreds of idle connections and one that never reads disturb nobody.",
    "R-5": "No acknowledgement leaves before its commit is on the disk.",
    "R-6": "A terminal or pipe that nobody reads holds up nothing.",
}

TOOLS = {
    "K-1": "The permission mode decides at the gate which tools run; forbidden ones are not there.",
    "K-2": "What a person must approve runs only when the approver says so, as checked as before.",
    "K-3": "Disabled tools are absent: from names, descriptions, summaries and near misses.",
    "K-4": "Failures that pass are repeated for idempotent tools only, and the attempts recorded.",
    "K-5": "A tool that asks for an idempotency key gets the call's; models cannot see or fill it.",
    "K-6": "A call that is given up is told so; what it returns later is thrown away.",
    "K-7": "Results are cut to their budget: text with its length, JSON lists with their total.",
    "K-8": "Wrong arguments of any tool are told in words that a model can act on.",
    "K-9": "Of many tools a model picks by one-line summaries what is then described.",
    "K-10": "A sandboxed function is bounded in memory, processor time, files, output and time.",
    "K-11": "A sandboxed function has no network and no processes, and leaves nothing behind.",
    "K-12": "Tools of MCP servers, by stdio and HTTP, are the agent's under the server's prefix.",
    "K-13": "A server that fails, dies or hangs takes its tools along, is told of, and comes back.",
    "K-14": "No process of an MCP server outlives its agent.",
}

CONTROL = {
    "Y-1": "A turn stopped at any await ends as cancelled, with no task left and messages whole.",
    "Y-2": "A turn whose process dies at any await is taken up again, and says everything once.",
    "Y-3": "What the hub refuses for now is told again until the turn's record holds.",
    "Y-4": "What a person says in a running turn enters at its next question, and wakes nobody.",
    "Y-5": "A reply required by a steering message is asked for, whatever was said before it.",
    "Y-6": "A turn taken up again shows a steering message in the same place.",
    "Y-7": "Hooks are told of turns and calls, and may refuse a call, but not change it.",
    "Y-8": "A hook that fails is noted and ends no turn; a call that it should judge does not run.",
    "Y-9": "A message that is being written is shown in its thread, and nothing else is.",
    "Y-10": "A turn ends when its tokens or its time are used up; a tool's time is its own.",
}

ROLES = {
    "O-1": "A pipeline routes, plans, runs independent steps side by side, judges and answers.",
    "O-2": "A failed step is run again with what needs it, or another plan is made, a few times.",
    "O-3": "What only a person can decide is asked, and the answer goes on with the same work.",
    "O-4": "A step may be a request to another agent, whose answer is its result.",
    "O-5": "A router hands on what it is sure of, and asks about the rest.",
    "O-6": "Each role is an agent of its own, too; an executor makes exactly one call.",
    "O-7": "An answer of a role that is not valid is corrected once, in every dialect.",
    "O-8": "A pipeline that was killed asks, calls and sends nothing twice.",
    "O-9": "In the mode `interactive` a person is asked after each call that does something.",
    "O-10": "A turn begins with the tool that the config names.",
    "O-11": "A helper has one goal, a thread of its own, bounds, and exactly one result.",
    "O-12": "What a person says while roles work is heard by the next one, and all after it.",
    "O-13": "A question to a role or a helper fits the window of its model.",
    "O-14": "The prompt of an agent, in parts or versions, is that of its roles.",
}

KNOWLEDGE = {
    "E-1": "A search finds passages with their file, line and headings, the best first.",
    "E-2": "Files that are new, changed, renamed or gone are noticed at the next search.",
    "E-3": "Links that lead out of a folder of knowledge are not followed.",
    "E-4": "What cannot be searched, or is over a limit, is told with its reason.",
    "E-5": "Any text is a valid query; results keep to their budget hit by hit.",
    "E-6": "Skills are named in the prompt and loaded on demand; unknown names are told near ones.",
    "E-7": "A broken skill or a missing folder is a config error with file and line.",
    "E-8": "What a participant remembers is kept by the hub, its own alone, over restarts.",
    "E-9": "What is remembered has bounds, and remembering again changes nothing.",
    "E-10": "A prompt shows what the agent remembers: short values, long ones by key.",
}

CHARGE: dict[str, str] = {
    "H-1": "Past a limit of its interaction a message is kept and delivered, and wakes nobody.",
    "H-2": "A limit that is reached is told once, where it began, with the remedy.",
    "H-3": "What an agent opens by itself has half of every limit.",
    "H-4": "Who speaks in an interaction that did not wake it is charged to it all the same.",
    "H-5": "Two agents wake each other so many times, until a person speaks or time passes.",
    "H-6": "A day's limits of network, thread and agent hold, and a person is told so.",
    "H-7": "A question to a model is asked only if its estimate fits into what is left.",
    "H-8": "What is reserved is given back by the step, the turn's end, or the agent's going.",
    "H-9": "Sums are those of the recorded steps, whatever the disk refuses and over restarts.",
    "H-10": "What the store refuses uses up nothing.",
    "H-11": "Who takes part in an interaction may read its budget; spending is read by day.",
    "H-12": "What comes of content from outside the network says so by itself.",
    "H-13": "What is used and reserved never exceeds a budget by more than one estimate.",
    "H-14": "Who works for many people at once is not dampened because others ask the same.",
    "H-20": "A stop of a turn, thread, agent or everything ends at the hub what runs and waits.",
    "H-21": "Until it is resumed, what is stopped is woken by nothing and says nothing.",
    "H-22": "A thread and its turns are stopped by who reads it, the rest by owners; only people.",
    "H-23": "Who waited for an answer is told of a stop, once; a thread that was stopped shows it.",
    "H-24": "A stop wins over what is on its way; what was durable before it counts.",
    "H-25": "A stop that the disk or a mod refuses is done wholly or not at all.",
    "H-26": "Stops, latches and take-overs hold over a restart, and ended turns stay ended.",
    "H-27": "One turn more than the breaker allows latches the thread, until a person releases it.",
    "H-28": "A person who has taken an agent over speaks as it, marked so, and wakes as a person.",
    "H-29": "Nothing wakes an agent that was taken over; its holder hears what reaches it.",
    "H-30": "A take-over ends by hand or by its time, and the agent gets what was said meanwhile.",
    "H-31": "People are told what is stopped and who speaks for whom, on change and on joining.",
    "H-40": "A call is asked for once, started once when approved; asking again tells its state.",
    "H-41": "Those decide whom the config names, else the owners; never an agent or a program.",
    "H-42": "A decision is for the arguments looked at; edited ones must fit the tool's schema.",
    "H-43": "Of two who decide at once one does, and the other is told who did what.",
    "H-44": "What nobody has decided in time is a no.",
    "H-45": "Approvers who are nobody are config errors, and tools that nobody could approve.",
    "H-46": "When its turn is over, ended by whomever, nothing that it asked for can run.",
    "H-47": "One notice without arguments stands in the thread; who may decide is told of it.",
    "H-48": "A restart or a refusing disk leaves an approval at the stage where it was.",
    "H-50": "A request ends once, by its worker's report, and that wakes who asked.",
    "H-51": "A deadline, a turn without a report, a stop, nobody woken: each ends it as failed.",
    "H-52": "A request keeps hops for its way back, and no limit keeps its result from waking.",
    "H-53": "Requests are listed for those who take part, and for owners.",
    "H-54": "Requests survive restarts and refusing disks, and wake who asked once all the same.",
    "H-55": "A question that would close a circle of waits is refused, and the circle is named.",
    "H-56": "A wait ends with an answer, by giving it up, with its turn, or when its asker goes.",
    "H-60": "Before each question to a model the agent takes a lease, and the step settles it.",
    "H-61": "A turn whose budget is used up ends without asking, and who waits is told.",
    "H-62": "A model is told what is left when that is little, and its step says so.",
    "H-63": "A turn that is stopped ends in the agent at once; nobody waits for its model.",
    "H-64": "An agent that was away when its turns were ended lets go of them as it returns.",
    "H-65": "A message waits for the next turn or enters the one that runs, as its sender says.",
    "H-66": "A person's message may interrupt a turn; the next begins with it, who waits is told.",
    "H-67": "An idle agent may wait a moment for more; a person who talks to it does not wait.",
    "H-68": "No message of a person who waits ends without an answer or a notice.",
    "H-80": "A call that needs a person runs when one has approved it, with what they changed.",
    "H-81": "A no, or no word in time, is told to the model with the reason.",
    "H-82": "All calls of a step that wait for a person are asked about at once; the others run.",
    "H-83": "A turn that waits for a person holds up nobody, and its time stands still.",
    "H-84": "A turn that waited goes on after its agent was away, and does nothing twice.",
    "H-85": "An approved call that had begun when its agent died is not run again.",
    "H-86": "Helpers and steps of plans wait for a person as turns do.",
    "H-87": "A prompt shows each sender's kind, who spoke for an agent, and what is from outside.",
    "H-88": "A turn that has read something from outside knows it, also when it is taken up again.",
    "H-89": "What a turn says that has read something from outside is marked so.",
    "H-90": "A tool with `confirm: tainted` asks a person only in turns that read such things.",
    "H-91": "A Python agent hands on work, and gets its one result or an error that says why not.",
    "H-92": "What a handler gives back for a task is its report.",
    "H-93": "Who asks says that it waits; what would close a circle of waits is refused by name.",
    "H-94": "A prompt shows a task with its id and deadline, and how a request has ended.",
    "H-95": "A kill at any stage of an approval leaves one decision, and one run at most.",
    "H-100": "What people in charge decide and what was spent is kept, and there after a restart.",
    "H-101": "Who wakes an agent is told how many wakes wait there, as the store has it.",
    "H-102": "A receipt tells in which prompt a message stood, and whether it was answered.",
    "H-103": "Who speaks is told whom a limit or a stop has kept asleep, and by what.",
    "H-104": "The page about wakes states the rules from the tables that the hub decides by.",
    "H-110": "Agents that set each other going come to an end; people are served during and after.",
    "H-111": "What has no cause to trace is stopped by the breaker, until a person releases it.",
    "H-112": "Who answers what it merely overhears is bound by the interaction's budget.",
    "H-113": "A message that asks every agent to forward it dies at the budget.",
    "H-120": "`hubbub interaction` draws who caused what, with tokens, cost, outcome and budget.",
    "H-121": "`hubbub why` tells the whole story of a message, of everybody it reached.",
    "H-122": "Stops are set, listed and lifted from the shell, and what they do is told.",
    "H-123": "A latched thread is listed and released from the shell.",
    "H-124": "Approvals are shown with what to type, and given, denied or changed from the shell.",
    "H-125": "An agent is spoken for, marked so, and handed back from the shell.",
    "H-126": "What was spent is told by day, agent and thread, with the day's limits.",
    "H-127": "Requests among agents are listed with their state.",
    "H-128": "A chat tells of an approval once, with what to type, and how it was decided.",
    "H-129": "A chat tells what is stopped, latched and let go on, and stops from where one is.",
    "H-130": "Who speaks for an agent is shown what reaches it, and answers there.",
    "H-131": "Messages are marked: who spoke for whom, what is from outside, what is asked for.",
    "H-132": "Who sends is told whom the message does not wake, why, and what to do about it.",
    "H-133": "In the full screen an approval is looked at, changed, given or denied in a dialog.",
    "H-134": "In the full screen a key stops this turn, this thread, an agent or everything.",
    "H-135": "In the full screen a key speaks for an agent and hands it back.",
    "H-140": "Calls that wait are approved, denied or edited in the page, within their schema.",
    "H-141": "The page stops and resumes what agents do where it shows, and releases a latch.",
    "H-142": "In the page a person chooses how the next word reaches who is at work.",
    "H-143": "In the page a person speaks for an agent, marked so, hears it, and hands it back.",
    "H-144": "The page shows budgets, costs, whom a limit keeps asleep, and marks of messages.",
}

BEHAVIOURS = [
    *_of("2-protocol", PROTOCOL),
    *_of("2-protocol", BOUNDS),
    *_of("2-protocol, issue", DOORS),
    *_of("4-wakes", WAKES),
    *_of("2-protocol", STORE),
    *_of("2-protocol, issue", CLIENT),
    *_of("3-agents", AGENTS),
    *_of("3-agents, issue", PROMPTS),
    *_of("3-agents, 4-wakes", TURNS),
    *_of("1-architecture, issue", MODS),
    *_of("7-config, issue", LAUNCH),
    *_of("issue", USING),
    *_of("6-quality, issue", RELIABILITY),
    *_of("3-agents, issue", TOOLS),
    *_of("3-agents, 4-wakes, issue", CONTROL),
    *_of("3-agents, issue", ROLES),
    *_of("3-agents, issue", KNOWLEDGE),
    *_of("4-wakes, issue", CHARGE),
]
