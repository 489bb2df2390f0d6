"""Other people's trainers ask a fitted credit at run time, one module a trainer.

`credits` is what they share: a source of credits (a folder of `aria fit`, or a server's address)
and where a turn's number stands among its tokens. The trainers are no dependencies of this package.
"""
