"""What a policy is trained to do, one module an objective or family (`policy.method`).

An objective turns a log's tables into sequences with values (`material`, before any model is
there), adds what only the policy of the moment knows (`ready`: log-probabilities, values of
histories; once an iteration) and has the loss of a micro-batch. REINFORCE and behaviour cloning are
in `reinforce`; one clipped-ratio loss serves PPO, SPAG, GRPO and GiGPO (`clipped`, `ppo`, `spag`,
`grpo`), one pair loss both DPOs (`pairs`, `dpo`). `registry` has the one table of methods.
"""
