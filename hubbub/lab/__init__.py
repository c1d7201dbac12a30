"""What one uses while building agents, apart from what runs them: prompts are linted (`lint`),
shown as a model reads them (`previews`), and tried on cases (`cases`, `fixtures`, `prompt_tests`)
with results for CI servers (`junit`). Imports the app and what stands below it."""
