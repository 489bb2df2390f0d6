"""Credit as the files that other people's trainers read (docs/exports.md).

`turns` reads the log again and puts each action's credit beside its chat, one for every trained
role; `chats`, `pairs`, `tokens` and `tables` make a trainer's records of it; `cli` is the command.
"""
