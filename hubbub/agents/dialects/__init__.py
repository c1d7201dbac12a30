"""How models call tools: natively through their endpoint, or as text in their answers.

base          the interface `Dialect`, and native calls
text_dialect  the base class of text dialects
final_output  one JSON object per step
tool_call     one line per call
scan          extracts JSON from a model's text
"""
