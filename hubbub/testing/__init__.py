"""For tests, of Hubbub's own and of people's: real parts in one process, and no mocks.

network                       a whole network without a process of its own
model_server, model_script    an endpoint over HTTP, and the script that it plays; `model_playbook`
                              chooses; `model_request`, `model_responses`, `model_wire`: HTTP
store_contract, _*            what each store has to do; `store_rows` writes its rows
mod_contract                  what each mod has to do

May import everything but the commands, which import it only to serve a script.
"""
