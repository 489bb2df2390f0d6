"""Dialogues come in over HTTP; the credits of a fit, or a reward model's, go out.

Start with `serve` (`aria serve`, a fit of `aria fit`) and `scorer_server` (the routes, a reward
model's folder); `scorer_requests` checks what is asked, `scorer_batches` scores it together.
"""
