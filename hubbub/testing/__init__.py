"""For tests of Hubbub and of its users: real parts in one process, and no mocks.

network                       a whole network in this process
model_server, model_script    a model endpoint over HTTP, and the script that it plays;
                              `model_playbook` chooses the answers, `model_request`,
                              `model_responses` and `model_wire` read and write HTTP
store_contract, _*            the contract of stores; `store_rows` builds their rows
mod_contract                  the contract of mods

Imports everything except the commands, which import it only to serve a script.
"""
