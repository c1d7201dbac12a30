"""Mistakes in a config are reported with their place, the expected value and the nearest name."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.unit.config.conftest import Problems
from tests.unit.conftest import Write

FILES = {
    "bots/calculator.py": "import json\nclass Calculator: ...\nX = Y = 1\n",
    "rules.py": "class Rules: ...\n",
    "tools.py": "def word_count(text: str) -> int: ...\nasync def fetch() -> None: ...\n",
    "broken.py": "x = 1\nclass Bot\n",
    "faq/a.md": "text",
}
"""Files next to the YAML."""
MODELS = "models: {default: {model: m}, small: {model: s}}\n"

OF_SHAPE = """
netwrk: {}
---
network:
  listn: a:1
---
channels: {a: {zzz: 1}}
---
models:
  m: {}
---
models: {m: {modle: x}}
---
models:
  a: {model: m, base_url: "localhost:11434/v1"}
  b: {model: m, base_url: "http://127.0.0.1:x/v1"}
  c: {model: m, base_url: ""}
  d: {model: m, api_key: "sk-…"}
  e: {model: m, api_key: "Bearer sk-secret"}
  f: {model: m, extra_headers: {"X Y": secret}}
  g: {model: m, extra_headers: {X: "secret\\r\\nY: 1"}}
---
humans: []
---
agents:
  a: text
---
channels: {a b: {}}
---
network: {name: a.b}
---
network: {name: 5}
---
network: {name: }
---
network: {compression: [1]}
---
network: {auth: opne}
---
network: {gateway_token: short-secret}
---
network: {limits: {frame: 3 bananas, heartbeat: soon, burst: many}}
---
network: {limits: {frame: LONGk, heartbeat: LONGd}}
---
network: {limits: {burst: 0, heartbeat: 0}}
---
network: {auth: xLONG}
---
network: {port: 4821, token: a}
users: {ann: {}}
models: {default: {name: m, url: "http://127.0.0.1:1/v1", key: k, temp: 1}}
agents:
  a: {system_prompt: You help., llm: default, functions: [f], max_turns: 3}
  b: {type: python, role: clerk, description: Helps.}
channels: {desk: {topic: Help, users: all}}
---
network: {auth: a-word-of-40-letters-0123456789-01234567}
---
network: {auth: a-word-of-41-letters-0123456789-012345678}
---
models: {m: {model: x, max_output_tokens: -5, temperature: -1}}
---
humans:
  ann:
    roles:
      - owner
      - admn
---
channels: {a: {members: al}}
---
humans: {ann: {}}
channels:
  a:
    members:
      - ann
      - 7
---
mods: [3]
---
network: {auth: "${AUTH}", name: "${NAME}", listen: "${LISTEN}"}
models: {m: {model: "${M}"}}
---
agents:
  a: {zzz: 1}
network:
  y: 2
  z: 3
---
network: {listen: nowhere, auth: opne}
channels: {c: {members: [bob]}, d: 5}
mods: [nope, 5]
agents: {hub: {kind: python, clas: x}, e: {model: 5}}
"""
OF_NETWORKS = """
agents:
  hub: {}
  operator: {}
  broadcast: {}
humans:
  all: {}
  everyone: {}
  here: {}
---
humans: {t5: {}}
---
channels: {channel_desk: {}, desk: {}}
---
agents:
  ann: {}
humans:
  ann: {}
---
agents:
  ann: {}
  ann: {}
---
mods:
  - moderation
  - moderatoin
---
mods: [{files: {}}]
---
mods: [{moderation: {}, x: {}}]
---
humans: {ann: {}}
channels:
  desk:
    members: [ann, anne]
---
network:
  auth: open
  listen: 0.0.0.0:4820
---
network:
  listen: localhost
---
network: {store: "postgres://hubbub:secret@x"}
---
network: {store: "postgresql://hubbub:se@cret@db/news"}
---
network: {store: "postgresql://hubbub:12/secret@db/news"}
---
network: {store: "postgresql://hubbub:secret%@db/news"}
---
network: {store: hubbub.db}
---
network: {store: "sqlite:"}
---
network: {store: sqlite:data/x.db}
---
network: {hosts: [https://hub.example.org/, '*.example.org', hub.example.org:8443]}
---
include: 5
---
include: {a: b}
---
include: [5]
---
include: net.yaml
---
include: "${WHERE}"
---
network: {}
include:
  - gone.yaml
"""
OF_AGENTS = """
agents:
  ann:
    model: smal
---
agents: {ann: {model: '${WHICH}'}}
---
agents: {a: {kind: python}}
---
agents: {a: {class: x.py:X}}
---
agents: {a: {kind: python, clas: x.py:Y}}
---
agents: {a: {history: {mesages: 3}}}
---
agents: {a: {kind: python, class: bots/calculater.py:Calculator}}
---
agents: {a: {kind: acp}}
---
agents: {a: {kind: acp, acp: {command: []}}}
---
agents: {a: {kind: acp, acp: {command: [sh], cwd: nowhere}, model: small, fork: {}}}
---
agents: {a: {kind: python, class: nowhere/x.py:X}}
---
agents: {a: {kind: python, class: bots/calculator.py:Calculater}}
---
agents: {a: {kind: python, class: broken.py:Bot}}
---
agents: {a: {kind: python, class: bytes.py:Bot}}
---
agents: {a: {kind: python, class: Calculator}}
---
agents: {a: {kind: python, class: rules.py}}
---
agents: {a: {kind: python, class: rules:Rules}}
---
agents: {a: {kind: python, class: "rules.py:"}}
---
agents: {a: {kind: python, class: "rules.py:a-b"}}
---
agents: {a: {hooks: [rules.py:Rule]}}
---
agents: {a: {hooks: [rules]}}
---
agents:
  a:
    tools:
      - read_thread
      - tools.py:word_count
      - tools.py:fetch
      - tools.py:wordcount
      - gone.py:x
---
agents: {a: {template: t.j2}}
---
agents: {a: {mcp: [files]}}
---
agents: {a: {mcp: [fiels]}}
mcp_servers: {files: {command: [x]}}
---
mcp_servers: {files: {command: [x], folder: y}}
---
mcp_servers: {files: {command: [x], url: "http://x"}}
---
mcp_servers: {files: {url: "http://"}}
agents: {a: {kind: a2a, a2a: {url: "https://lawyer.example.com:x/"}}}
---
agents: {a: {permission_mode: aks}}
"""
OF_APPROVERS = """
humans: {ann: {roles: [owner]}, bob: {}}
network:
  approvals:
    approvers:
      - ann
      - bobb
---
agents:
  calc:
    approvers: [calc]
---
agents: {calc: {tools: [remember], tool_settings: {remember: {confirm: true}}}}
---
agents: {calc: {tools: [remember], tool_settings: {remember: {confirm: untrusted}}}}
---
network: {approvals: [x]}
---
agents: {a: 3}
---
network: 3
"""
OF_KNOWLEDGE = """
agents: {a: {knowledge: [fqa]}}
---
agents: {a: {knowledge: [nowhere]}}
---
agents: {a: {knowledge: {folders: [fqa]}}}
---
agents: {a: {knowledge: [faq/a.md]}}
---
agents: {a: {knowledge: faq}}
---
agents: {a: {knowledge: {folder: [faq]}}}
---
agents: {a: {knowledge: [1]}}
---
agents: {a: {skills: [fqa]}}
---
agents: {a: {skills: [faq/b.md]}}
---
knowledge:
- nowhere
"""
OF_PROMPTS = """
prompt: {nmae: a}
---
prompt: {components: {remove: [tool]}}
---
prompt: {components: {replace: {identiy: {text: x}}}}
---
prompt: {components: {add: {tools: {text: x}}}}
---
prompt: {components: {remove: [tools], replace: {tools: {text: x}}}}
---
prompt: {components: {add: {a: {text: x, when: has_skils}}}}
---
prompt: {components: {add: {a: {text: x, when: [always, not has_mod]}}}}
---
prompt: {components: {add: {a: {}}}}
---
prompt: {components: {add: {a: {text: x, file: y}}}}
---
prompt: {name: a, version: 1.10}
---
prompt: {version: '1'}
---
prompt: {rollout: {version: '2', share: 10%}}
---
prompt: {name: a, rollout: {version: latest, share: 10%}}
---
prompt: {name: a, rollout: {version: '2', share: 200%}}
---
prompt: {name: a, rollout: {version: '2', share: many}}
---
prompt: {name: a}
    rollout: {share: 10%, instruction: x}
---
rollout: {share: 10%, model: smal}
---
rollout: {instruction: x}
---
prompt: {name: a, version: ../../x}
---
prompt: {reminder: [a, b, c, d]}
---
prompt: {examples: [{incoming: x, steps: []}]}
"""
OF_ROLES = """
{kind: pipeline, model: small, models: {router: smal}}
---
{kind: pipeline, model: small, models: {writer: small}}
---
{kind: piepline}
---
{kind: router, roles: {min_confidence: 2}}
---
{kind: planner, roles: {max_plan_step: 2}}
---
{kind: executor, class: a.py:B}
---
{fork: {depth: 3}}
---
{mode: slow}
---
{kind: router, mode: interactive}
---
{kind: pipeline, begin_with: list_threads}
---
{kind: router, fork: {}}
---
{kind: router, skills: [.]}
---
{kind: pipeline, select_over: 5}
---
{kind: router, max_steps: 3}
"""
OF_PRICES = """
{input: 1, ouput: 2}
---
{input: 1}
---
{input: -1, output: 2}
---
{input: .inf, output: 2}
---
{input: 1, output: dear}
---
0.25
---
{input: 1, output: 2, cached: 0.1}
"""


def within(template: str, blocks: str) -> str:
    """Insert each block into the template of a config."""
    return "\n---\n".join(
        template.replace("HERE", each) for each in blocks.strip().split("\n---\n")
    )


@pytest.mark.behaviour("L-1", "L-3", "D-3", "D-6", "E-7", "H-45", "Q-3")
def test_a_mistake_is_reported_with_its_line_the_expected_value_and_the_nearest_name(
    problems: Problems, write: Write, snapshot: SnapshotAssertion
) -> None:
    for name, text in FILES.items():
        write(name, text)
    write("bytes.py", "").write_bytes(b"x = '\x00'\n")
    groups = {
        "shape": OF_SHAPE.strip(),
        "networks": within("HERE\n" + MODELS, OF_NETWORKS),
        "agents": within(MODELS + "HERE", OF_AGENTS),
        "approvers": within(MODELS + "HERE", OF_APPROVERS),
        "knowledge": within(MODELS + "HERE", OF_KNOWLEDGE),
        "prompts": within(MODELS + "agents:\n  bot:\n    HERE", OF_PROMPTS),
        "roles": within(MODELS + "agents:\n  bot: HERE", OF_ROLES),
        "prices": within("models:\n  small:\n    model: m\n    price: HERE", OF_PRICES),
        "models": "agents: {ann: {}}\n---\nmodels: {a: {model: m}}\nagents:\n  b: {kind: pipeline}",
    }
    for group, blocks in groups.items():
        shown = []
        for text in blocks.split("\n---\n"):
            lines = problems(text.replace("LONG", "9" * 400) + "\n")
            source = text.replace(MODELS, "").rstrip()
            shown.append("\n".join([source, *(f"  ⇒ {line}" for line in lines)]))
        assert "\n\n".join(shown) == snapshot(name=group)


def test_mistakes_of_all_included_files_are_reported_together_each_with_its_file(
    problems: Problems, write: Write, snapshot: SnapshotAssertion
) -> None:
    write("one.yaml", "# x\n\nnetwork: {auth: opn}\nchannels: {c: {members: [bob]}}\n")
    write("two.yaml", "humans: {ann: {roles: [owner]}}\nmods:\n  - moderation\n  - moderation\n")
    write("a.yaml", "include:\n  - b.yaml\n")
    write("b.yaml", "x: 1\ninclude: [net.yaml]\n")
    reported = [
        *problems("include: one.yaml\nnetwork: {store: x, zzz: 1}\nhumans: []\n"),
        *problems("include: [one.yaml, two.yaml]\nnetwork:\n  auth: opne\nmods: [nope]\n"),
        *problems("include: two.yaml\nhumans: {ann: 5}"),
        *problems("include: [a.yaml]\n"),
        *problems("network: {auth: open}", overrides={"listen": "0.0.0.0:4820"}),
        *problems('network: {listen: "${L}", name: "${N}"}', overrides={"listen": "127.0.0.1:0"}),
    ]
    assert "\n".join(reported) == snapshot
